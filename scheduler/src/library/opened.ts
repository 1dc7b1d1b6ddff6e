import { resolve } from "node:path";
import type { Redactor } from "../access/secrets/redactor.ts";
import { CarillonError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { UntilAnswered } from "../base/until-answered.ts";
import { type EmbeddedStore, openEmbedded } from "../embedded/index.ts";
import type { Enqueued } from "../run/run-record.ts";
import { plainAdvice, plainHosts, plainWords } from "../settings/plain-store.ts";
import { type CarillonOptions, embeddedStore, type Settings } from "../settings/settings.ts";
import type { Surroundings } from "../settings/surroundings.ts";
import { Definitions } from "../store/definitions.ts";
import { Enqueuer, type SendEnqueues } from "../store/enqueuer.ts";
import { openPostgres } from "../store/postgres/postgres.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { Measuring } from "../telemetry/measuring.ts";
import { openStoreTracing, type Tracing } from "../telemetry/tracing.ts";
import type { RunHandle } from "./run-handle.ts";

/** The objects that exist once the store is open. */
export interface Opened {
  store: Store;
  /** The store's URL. */
  url: string;
  embedded: EmbeddedStore | undefined;
  definitions: Definitions;
  enqueuer: Enqueuer<RunHandle>;
  tracing: Tracing | undefined;
}

export interface Opening {
  settings: Settings;
  /** Without `store` this is the embedded store too; a warning is then logged unless `directory` is given. */
  options: Pick<CarillonOptions, "store" | "listenUrl" | "directory" | "createStore">;
  log: Log;
  redactor: Redactor;
  storeClock: StoreClock;
  surroundings: Surroundings;
  measuring: Measuring;
  signal: AbortSignal;
  /** Aborting it rejects all calls that still wait for the store. */
  abandon: AbortSignal;
  untilAnswered: UntilAnswered;
  /** Called after the store was restored from a backup and this process has dropped its cached definitions. */
  onBack: () => void;
  /** Creates the handle that the caller of `enqueue` gets. */
  handleOf: (enqueued: Enqueued) => RunHandle;
  send: (store: Store, ...batch: Parameters<SendEnqueues>) => Promise<Enqueued[]>;
}

/** Opens the given store, or else the embedded store. If a later step fails, everything that was opened is closed again. */
export async function openStore({ settings, options, log, signal, storeClock, ...given }: Opening): Promise<Opened> {
  const { schema, migrate, failFast, connections } = settings;
  const { store: place, directory, createStore: create, listenUrl } = options;
  const { surroundings, measuring, redactor, untilAnswered, send, handleOf, abandon, onBack } = given;
  const theirs = place === embeddedStore ? undefined : place;
  if (place === undefined && directory === undefined)
    log.warn(
      {},
      `no store was given, so this is a private PostgreSQL in ${resolve(".carillon")}; say store: "embedded" if it should be`,
    );
  for (const url of theirs === undefined ? [] : [theirs, ...(listenUrl === undefined ? [] : [listenUrl])]) {
    const hosts = plainHosts(url, process.env);
    if (hosts.length > 0) log.warn({ advice: plainAdvice }, plainWords(hosts));
  }
  const embedded =
    theirs === undefined
      ? await openEmbedded({ directory, create, signal, log: (line) => log.info({}, line) })
      : undefined;
  const url = theirs ?? (embedded as EmbeddedStore).url;
  let opened: Store | undefined;
  let definitions: Definitions | undefined;
  try {
    opened = await openPostgres({
      url,
      listenUrl: embedded ? undefined : listenUrl,
      schema,
      connectionsMax: connections,
      migrate,
      failFast,
      signal,
      abandon,
      log,
      onBack: () => {
        definitions?.forget();
        onBack();
      },
      ...(embedded ? { revive: () => embedded.revive() } : {}),
      ...surroundings.postgres,
    });
    const store = await measuring.around(await surroundings.around(opened));
    await untilAnswered(() => storeClock.ask(store.clock));
    storeClock.sharpenBy(store.clock);
    const tracing = measuring.follow(await openStoreTracing(store.runs, storeClock, redactor));
    const enqueuer = new Enqueuer((...batch) => send(store, ...batch), surroundings.callersClock, handleOf);
    definitions = new Definitions(store.tasks);
    return { store, url, embedded, definitions, enqueuer, tracing };
  } catch (error) {
    await Promise.allSettled([opened?.close()]);
    await embedded?.release();
    throw error;
  }
}

/** The opened store, for reading tasks, runs, slots and members. */
export interface Looking extends Pick<Opened, "store" | "embedded"> {
  nowMs: () => number;
  url: string | undefined;
  coordination: string | undefined;
}

export const stopped = () =>
  new CarillonError("STOPPED", "this Carillon has been stopped", { hint: "Make a new one." });
