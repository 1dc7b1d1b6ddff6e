import type { SqlClient } from "../../base/change.ts";
import { type Clock, pause } from "../../base/clock.ts";
import { isCarillonError, isStoreAway, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Lock } from "../../cluster/locks.ts";
import { clean } from "../../run/error-parts.ts";
import { type EventFilter, eventsPerRead, isMatch, pollMs, tasksOf } from "../../store/event-feed.ts";
import type { AuditPlace, ConsumerPlace, EventPlace, EventStore, StoredEvent } from "../../store/event-store.ts";
import type { Codecs } from "../payloads/codecs.ts";
import { type AnyHandler, eventOf } from "./event.ts";

/** The time in ms after which the store deletes a named consumer and its position if no process has served the consumer. */
export const consumerKeptMs = 7 * 86_400_000;
const keepAgainMs = 60_000;
/** After a failed delivery, the interval in ms between two checks that this process still serves the consumer. */
const checkMs = 1_000;
/** The number of characters of an error that the store keeps for a failed delivery. */
const errorLength = 1_000;
const [firstPauseMs, longestPauseMs, storeAwayMs] = [1_000, 60_000, 1_000];

export interface ConsumerOf {
  name: string;
  filter: EventFilter;
  tx: boolean;
  handler: AnyHandler;
  events: EventStore;
  lock: Lock;
  clock: Clock;
  now: () => number;
  log: Log;
  codecs: Codecs;
}

/**
 * Serves a named consumer until the signal aborts or the consumer is deleted: waits for the consumer's lock, and lets `serve` continue from
 * its stored position. A process that has lost the lock cannot advance the position any more. Never rejects.
 * @param enrolAgain called if the consumer is no longer stored. Stores it again and returns true if the store has lost it; returns false if
 * a caller deleted it, and the consumer ends. Without this function, the consumer ends in both cases.
 */
export async function consume<Place extends EventPlace | AuditPlace>(
  { name, lock, events, clock, log }: Pick<ConsumerOf, "name" | "lock" | "events" | "clock" | "log">,
  serve: (served: ConsumerPlace<Place>, over: AbortSignal) => Promise<void>,
  signal: AbortSignal,
  enrolAgain?: () => Promise<boolean>,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const held = await lock.acquire({ signal });
      try {
        const served = await events.serve<Place>(name);
        if (served) await serve(served, AbortSignal.any([signal, held.signal]));
        else {
          log.warn({ consumer: name }, "this consumer of events was forgotten");
          if (!(await enrolAgain?.())) return;
        }
      } finally {
        await held.release();
      }
    } catch (error) {
      if (signal.aborted || isCarillonError(error, "STOPPED")) return;
      const fields = { consumer: name, error: messageOf(error) };
      if (isStoreAway(error)) log.debug(fields, "a consumer of events waits for the store");
      else log.error(fields, "a consumer of events failed; it begins anew");
      await pause(clock, storeAwayMs, signal);
    }
  }
}

/** Delivers events to a consumer from its stored cursor on, and advances the cursor after the handler has returned. */
export async function serveEvents(
  consumer: ConsumerOf,
  { epoch, place: from }: ConsumerPlace,
  over: AbortSignal,
): Promise<void> {
  const { filter, events, clock, now, log, name } = consumer;
  let keptMono = 0;
  const keep = async (place: EventPlace) => {
    keptMono = clock.monotonic();
    const { whole } = await events.want(filter.types, now() + consumerKeptMs, place, now());
    if (!whole) log.warn({ consumer: name }, "some events for this consumer were not recorded");
    return events.move(name, epoch, place, now() + consumerKeptMs);
  };
  if (!(await keep(from))) return;
  for (let place = from; !over.aborted; ) {
    const page = await events.read(place, { types: filter.types, tasks: tasksOf(filter) }, eventsPerRead, now());
    for (const event of page.events)
      if (isMatch(filter, event) && !(await handled(consumer, event, { epoch, over }))) return;
    ({ place } = page);
    // Advances the cursor once a minute even if no events match, so that the next process does not read these events again.
    if (clock.monotonic() - keptMono > keepAgainMs && !(await keep(place))) return;
    if (page.whole) await pause(clock, pollMs, over);
  }
}

/**
 * Calls the handler with one event, again after each error, and advances the cursor.
 * @returns false if this process no longer serves the consumer
 */
async function handled(
  { name, filter, tx, handler, events, clock, now, log, codecs }: ConsumerOf,
  event: StoredEvent,
  { epoch, over }: { epoch: number; over: AbortSignal },
): Promise<boolean> {
  const told = await eventOf(event, codecs);
  const until = () => now() + consumerKeptMs;
  let wantedMono = clock.monotonic();
  for (let attempt = 1; !over.aborted; attempt++) {
    let failure: { error: unknown } | undefined;
    const handle = async (client?: SqlClient) => {
      try {
        await handler(told, { signal: over, attempt, ...(client ? { tx: client } : {}) });
      } catch (error) {
        failure = { error };
        throw error;
      }
    };
    try {
      if (tx) return await events.moveWith(name, epoch, event.place, until(), handle);
      await handle();
      return await moved(() => events.move(name, epoch, event.place, until()), clock, over);
    } catch (error) {
      if (!failure) throw error;
      if (over.aborted) break;
      const pauseMs = pauseAfterMs(attempt);
      const fields = { consumer: name, run: event.runId, type: event.type, attempt, error: messageOf(error) };
      log.warn({ ...fields, againInMs: pauseMs }, "a consumer of events threw; it gets the event again");
      const { type, runId, task, atMs: eventMs } = event;
      const text = clean(messageOf(error).slice(0, errorLength));
      const failing = { type, runId, task, eventMs, attempt, error: text, atMs: now(), againMs: now() + pauseMs };
      const note = async () => {
        // Renews this consumer's request to record these types of events, so that later events are recorded while it fails.
        if (clock.monotonic() - wantedMono > keepAgainMs) {
          await events.want(filter.types, until(), event.place, now());
          wantedMono = clock.monotonic();
        }
        return events.failed(name, epoch, failing, until());
      };
      if (!(await moved(note, clock, over))) return false;
      // Another attempt after a restart of the consumer would deliver the event twice, because the position can no longer be advanced.
      const againMono = clock.monotonic() + pauseMs;
      while (!over.aborted && clock.monotonic() < againMono) {
        await pause(clock, Math.min(checkMs, againMono - clock.monotonic()), over);
        if (!(await moved(() => events.serves(name, epoch), clock, over))) return false;
      }
    }
  }
  return false;
}

/** Returns the pause in ms after a failed attempt to deliver, counted from 1. */
export const pauseAfterMs = (attempt: number): number => Math.min(firstPauseMs * 2 ** (attempt - 1), longestPauseMs);

/** Retries `move` while the store is unreachable. The handler has already returned, so a lost cursor would deliver the event twice. */
export async function moved(move: () => Promise<boolean>, clock: Clock, over: AbortSignal): Promise<boolean> {
  for (;;) {
    try {
      return await move();
    } catch (error) {
      if (!isStoreAway(error) || over.aborted) throw error;
      await pause(clock, storeAwayMs, over);
    }
  }
}
