import type { Clock } from "../../base/clock.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { checkNames, meant } from "../../base/nearest.ts";
import type { Lock } from "../../cluster/locks.ts";
import { checkLockName } from "../../cluster/locks.ts";
import { labelsOf } from "../../run/enqueue-options.ts";
import { type EventFeed, type EventFilter, feedOf } from "../../store/event-feed.ts";
import {
  type AuditPlace,
  type EventPlace,
  type EventType,
  eventTypes,
  placeOfCursor,
  type RunEventType,
  runEventTypes,
  type StoredEvent,
} from "../../store/event-store.ts";
import type { Store } from "../../store/store.ts";
import type { Codecs } from "../payloads/codecs.ts";
import { auditKeptMs, serveAudit, type TakeRows } from "./audit-stream.ts";
import { consume, consumerKeptMs, serveEvents } from "./consumer.ts";
import {
  type AnyHandler,
  type ClusterEventOf,
  type ConsumerOptions,
  type EventListening,
  type EventsOf,
  type EventsOptions,
  eventOf,
  type OnEvent,
} from "./event.ts";

export interface EventsParts {
  /** The clock by which polls and pauses are timed. */
  clock: Clock;
  now: () => number;
  open: () => Promise<{ store: Store }>;
  lock: (name: string) => Lock;
  log: Log;
  codecs: Codecs;
}

/** Subscriptions to the events of the whole cluster. */
export class Events {
  readonly #parts: EventsParts;
  readonly #closing = new AbortController();
  readonly #listening = new Set<EventListening>();

  constructor(parts: EventsParts) {
    this.#parts = parts;
  }

  readonly on: OnEvent = async (
    types: EventType | readonly EventType[],
    given: EventsOf | ConsumerOptions | AnyHandler,
    last?: unknown,
  ): Promise<EventListening> => {
    const [options, handler] = typeof given === "function" ? [{}, given] : [given, last as AnyHandler];
    checkNames("a listener to events", options, [...filters, "after", "signal", "name", "tx"]);
    const { name, tx = false, ...of } = options as Partial<ConsumerOptions>;
    const filter = filterOf({ ...of, types: typeof types === "string" ? [types] : types });
    if (typeof handler !== "function") throw invalid("on", "a listener to events needs a handler");
    if (name !== undefined) checkLockName("a consumer of events", name);
    if (name === undefined && tx) throw invalid("tx", "only a consumer with a name can handle events in a transaction");
    const place = of.after === undefined ? null : placeOfCursor(of.after);
    const { store, feed } = await this.#feed();
    const from = await feed.open(filter, place);
    const ending = new AbortController();
    const signal = this.#signal(ending.signal, of.signal);
    const { clock, now, log, codecs } = this.#parts;
    if (name !== undefined) {
      const { events } = store;
      await events.want(filter.types, now() + consumerKeptMs, null, now());
      await events.enrol(name, from, now() + consumerKeptMs);
      const lock = this.#parts.lock(`carillon/events/${name}`);
      const consumer = { name, filter, tx, handler, events, lock, clock, now, log, codecs };
      return this.#listens(
        ending,
        consume<EventPlace>(consumer, (served, over) => serveEvents(consumer, served, over), signal),
      );
    }
    const each = async () => {
      for await (const event of feed.follow(filter, from, signal)) await this.#tell(handler, event, signal);
    };
    return this.#listens(ending, each());
  };

  /** Yields the cluster's events, each at least once, until the signal aborts. @throws OPTION_INVALID, CURSOR_GONE, STOPPED, STORE_… */
  async *each<Type extends EventType = RunEventType>(
    options: EventsOptions<Type> = {},
  ): AsyncGenerator<ClusterEventOf<Type>> {
    checkNames("events", options, ["types", ...filters, "after", "signal"]);
    const filter = filterOf(options);
    const place = options.after === undefined ? null : placeOfCursor(options.after);
    const { feed } = await this.#feed();
    const from = await feed.open(filter, place);
    const { codecs } = this.#parts;
    for await (const event of feed.follow(filter, from, this.#signal(options.signal)))
      yield (await eventOf(event, codecs)) as ClusterEventOf<Type>;
  }

  /**
   * @internal Sends the audit log to a receiver. One process of the cluster at a time sends to each name, and the store holds the position.
   * A new name begins with the oldest row, and so does a name that the store has lost, for example because it was restored from a backup.
   * Sending ends once the name is deleted by `forget`.
   */
  async sendAudit(name: string, receiver: TakeRows): Promise<EventListening> {
    const { clock, now, log } = this.#parts;
    const { store } = await this.#parts.open();
    const { events, audit } = store;
    const enrol = () => events.enrol(name, { seq: 0 }, now() + auditKeptMs);
    const recovered = async () => (await events.want([], now(), null, now())).place.recovery;
    let recovery = await recovered();
    await enrol();
    const enrolAgain = async () => {
      const since = recovery;
      recovery = await recovered();
      if (recovery === since) return false;
      await enrol();
      return true;
    };
    const lock = this.#parts.lock(`carillon/events/${name}`);
    const ending = new AbortController();
    const of = { name, events, audit, lock, clock, now, log, receiver };
    return this.#listens(
      ending,
      consume<AuditPlace>(of, (served, over) => serveAudit(of, served, over), this.#signal(ending.signal), enrolAgain),
    );
  }

  /**
   * Deletes a named consumer and its position.
   * @returns true if the consumer existed
   * @throws STORE_…
   */
  async forget(name: string): Promise<boolean> {
    const { store } = await this.#parts.open();
    return store.events.forget(name);
  }

  /** @internal Ends all subscriptions. Resolves once their running handlers have returned or thrown. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#listening].map((one) => one.close()));
  }

  #signal(...signals: (AbortSignal | undefined)[]): AbortSignal {
    return AbortSignal.any([this.#closing.signal, ...signals.filter((one) => one !== undefined)]);
  }

  async #feed(): Promise<{ store: Store; feed: EventFeed }> {
    const { clock, now, log } = this.#parts;
    const { store } = await this.#parts.open();
    return { store, feed: feedOf({ events: store.events, clock, now, log }) };
  }

  #listens(ending: AbortController, work: Promise<void>): EventListening {
    const { log } = this.#parts;
    const over = work
      .catch((error) => log.error({ error: messageOf(error) }, "a listener to events has ended"))
      .finally(() => this.#listening.delete(listening));
    const close = () => {
      ending.abort();
      return over;
    };
    const listening = { close, [Symbol.asyncDispose]: close };
    this.#listening.add(listening);
    return listening;
  }

  async #tell(handler: AnyHandler, event: StoredEvent, signal: AbortSignal): Promise<void> {
    try {
      await handler(await eventOf(event, this.#parts.codecs), { signal, attempt: 1 });
    } catch (error) {
      const fields = { run: event.runId, type: event.type, error: messageOf(error) };
      this.#parts.log.error(fields, "a listener to events threw");
    }
  }
}

const filters = ["task", "namespace", "group", "labels"] as const;

function filterOf({ types = runEventTypes, task, namespace, group, labels }: EventsOptions<EventType>): EventFilter {
  for (const type of types)
    if (!eventTypes.includes(type))
      throw invalid("types", `there is no event ${JSON.stringify(type)}${meant(String(type), eventTypes)}`);
  if (types.length === 0) throw invalid("types", "types is empty");
  for (const [path, text] of Object.entries({ task, namespace, group }))
    if (text !== undefined && typeof text !== "string") throw invalid(path, `${path} must be a text`);
  const given = labels === undefined ? {} : { labels: labelsOf({ labels }) ?? {} };
  return { types: [...new Set(types)], task, namespace, group, ...given };
}

const invalid = (path: string, message: string) => new CarillonError("OPTION_INVALID", message, { path });
