import { pause, systemClock } from "../clock.ts";
import { type EmbeddedStore, openEmbedded } from "../embedded/index.ts";
import { CarillonError, isCarillonError } from "../errors.ts";
import { settingsOf } from "../settings.ts";
import { inspectPostgres } from "../store/inspect.ts";
import { migrations } from "../store/migrations/index.ts";
import { openPostgres } from "../store/postgres.ts";
import { skipNumbers } from "../store/restored.ts";
import { changesExit, type ExitCode, exitCodes } from "./exit-codes.ts";
import { operator } from "./operator.ts";
import { requireStore } from "./reach.ts";
import {
  type CommonOptions,
  chosenUrl,
  defaultDirectory,
  lookingOptions,
  placeText,
  withStore,
} from "./store-choice.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";

export interface MigrateOptions extends CommonOptions {
  plan?: boolean;
  wait?: boolean;
}

const askEveryMs = 1_000;

export async function migrateStore(options: MigrateOptions, terminal: Terminal): Promise<ExitCode> {
  requireStore(options, "migrate");
  const looking = lookingOptions(options);
  const { schema } = settingsOf(looking);
  const { directory = defaultDirectory } = looking;
  const given = chosenUrl(options);
  const embedded: EmbeddedStore | undefined = given === undefined ? await openEmbedded({ directory }) : undefined;
  const url = given ?? (embedded as EmbeddedStore).url;
  try {
    const place = placeText(given, embedded);
    const from = await (options.wait ? migrated(url, schema) : found(url, schema));
    const pending = migrations.filter(({ number }) => number > from);
    if (!options.plan && pending.length > 0) await migrate(url, schema);
    tell({ from, pending, done: !options.plan, place, schema }, terminal);
    return options.plan && pending.length > 0 ? changesExit : exitCodes.ok;
  } finally {
    await embedded?.release();
  }
}

const found = async (url: string, schema: string): Promise<number> =>
  (await inspectPostgres(url, schema)).server.migration;

/** `work` may wait for long; a signal ends that. */
async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupted = new AbortController();
  const onInterrupt = () => interrupted.abort();
  const names = ["SIGINT", "SIGTERM"] as const;
  for (const name of names) process.once(name, onInterrupt);
  try {
    return await work(interrupted.signal);
  } finally {
    for (const name of names) process.off(name, onInterrupt);
  }
}

/** The store answered just now, so what it waits for is a table that others have; it asks again until it gets it. */
const migrate = (url: string, schema: string): Promise<void> =>
  interruptible(async (signal) => (await openPostgres({ url, schema, signal })).close());

/** Until somebody has migrated it; a store that is not there yet is waited for too. */
const migrated = (url: string, schema: string): Promise<number> =>
  interruptible(async (signal) => {
    const newest = migrations.at(-1)?.number ?? 0;
    for (;;) {
      const at = await found(url, schema).catch((error: unknown) => {
        if (isCarillonError(error, "STORE_UNREACHABLE")) return 0;
        throw error;
      });
      if (at >= newest) return at;
      await pause(systemClock, askEveryMs, signal);
      if (signal.aborted)
        throw new CarillonError("STORE_OLDER", `the database is at version ${at}, this Carillon needs ${newest}`, {
          hint: "Run `carillon migrate`.",
        });
    }
  });

interface Migrated {
  from: number;
  pending: { number: number; name: string }[];
  done: boolean;
  place: string;
  schema: string;
}

function tell({ from, pending, done, place, schema }: Migrated, terminal: Terminal): void {
  const names = pending.map(({ number, name }) => ({ number, name }));
  if (terminal.json) {
    terminal.object({ from, to: migrations.at(-1)?.number, [done ? "applied" : "pending"]: names });
    return;
  }
  const where = `schema ${plain(schema)} of ${place}`;
  if (names.length === 0) terminal.line(`${where} is at version ${from}: nothing to do`);
  else {
    terminal.line(`${where}: version ${from} ${done ? "is now" : "would be"} ${names.at(-1)?.number}`);
    for (const { number, name } of names) terminal.line(`  ${String(number).padStart(4, "0")} ${name}`);
  }
}

export function restored(options: CommonOptions & { reason?: string }, terminal: Terminal): Promise<ExitCode> {
  requireStore(options, "restored");
  return withStore(options, async ({ tower, nowMs }) => {
    const { url, embedded } = await tower.open();
    const change = { author: operator(), reason: options.reason ?? "", nowMs: nowMs() };
    const next = await skipNumbers(url ?? (embedded as EmbeddedStore).url, tower.settings.schema, change);
    if (terminal.json) terminal.object(next);
    else
      terminal.line(
        `numbers go on from: run ${next.runId}, fence ${next.fence}, term ${next.term}. Nodes may start now.`,
      );
    return exitCodes.ok;
  });
}
