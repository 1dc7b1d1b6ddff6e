import { type Clock, pause } from "../base/clock.ts";
import { CarillonError, isStoreAway, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { namespaceOf } from "../base/namespace.ts";
import {
  type ChangeContent,
  type EventPlace,
  type EventStore,
  type EventType,
  eventTypes,
  isVisible,
  type StoredEvent,
} from "./event-store.ts";

export const pollMs = 250;
const storeAwayMs = 500;
export const eventsPerRead = 500;
/** A follower with more unprocessed events than this is removed from the shared read, and reads on its own. */
const waitingMost = 1_000;
/**
 * How long after a process's last request the store records events of the requested types, in ms. The process repeats its request after a
 * sixth of this time.
 */
const wantedMs = 3_600_000;
const wantAgainMs = wantedMs / 6;

export interface EventFilter {
  types: readonly EventType[];
  task?: string | undefined;
  namespace?: string | undefined;
  group?: string | undefined;
  /** The event's labels must include all of these. */
  labels?: Readonly<Record<string, string>> | undefined;
  /** A further condition on the name of the event's task. */
  has?: ((task: string) => boolean) | undefined;
}

export interface EventFeedOptions {
  events: EventStore;
  clock: Clock;
  /** Returns the store's time in epoch ms. */
  now: () => number;
  log: Log;
}

interface Follower {
  filter: EventFilter;
  /** The snapshot of the follower's own last read. Events visible in it have been delivered already. */
  seen: string;
  waiting: StoredEvent[];
  /** True if the follower must read on its own, from its last event on, because it has not joined yet or was too slow. */
  left: boolean;
  wake: () => void;
}

export function isMatch({ types, task, namespace, group, labels, has }: EventFilter, event: StoredEvent): boolean {
  if (!types.includes(event.type)) return false;
  // The name of an alarm rule begins with its namespace, as the name of a task does. Calendars and limits are in no namespace.
  const owned = event.type === "alarm-rule.changed" ? (event.told as ChangeContent).named : event.task;
  return (
    (task === undefined || event.task === task) &&
    (namespace === undefined || (owned !== null && namespaceOf(owned) === namespace)) &&
    (group === undefined || event.group === group) &&
    (labels === undefined || Object.entries(labels).every(([label, value]) => event.labels?.[label] === value)) &&
    (has === undefined || (event.task !== null && has(event.task)))
  );
}

export const tasksOf = ({ task }: EventFilter) => (task === undefined ? null : [task]);

/**
 * Reads the cluster's events for all followers in this process. One statement serves all of them; without followers nothing is read. A
 * follower that starts at an earlier position, or that is too slow, reads on its own until it has reached the position of the shared read.
 */
export class EventFeed {
  readonly #options: EventFeedOptions;
  readonly #followers = new Set<Follower>();
  #place: EventPlace | undefined;
  #reading: Promise<void> | undefined;
  /** The last of the queued reads. Reads run one after the other, so that a follower joins between two shared reads. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: EventFeedOptions) {
    this.#options = options;
  }

  /**
   * Makes the store record events of these types from now on.
   * @param after a position to continue from; null means now
   * @returns the position from which to follow
   * @throws CURSOR_GONE if the store does not have all events after that position; STORE_…
   */
  async open({ types }: EventFilter, after: EventPlace | null): Promise<EventPlace> {
    const { events, now } = this.#options;
    const nowMs = now();
    const { place, whole } = await events.want(types, nowMs + wantedMs, after, nowMs);
    if (whole) return place;
    throw new CarillonError(
      "CURSOR_GONE",
      "some events behind this cursor were not recorded, or are not kept any more",
      {
        path: "after",
        hint: "Begin without a cursor, and look up in the history what was missed.",
      },
    );
  }

  /** Yields each matching event after the position, at least once, until the signal aborts. Waits while the store is unreachable. */
  async *follow(filter: EventFilter, from: EventPlace, signal: AbortSignal): AsyncGenerator<StoredEvent> {
    const follower: Follower = { filter, seen: "", waiting: [], left: true, wake: () => undefined };
    const onAbort = () => follower.wake();
    signal.addEventListener("abort", onAbort, { once: true });
    let place = from;
    try {
      while (!signal.aborted) {
        const next = follower.waiting.shift();
        if (next) {
          ({ place } = next);
          yield next;
        } else if (follower.left) {
          const page = await this.#takeTurn(() => this.#catchUp(follower, place));
          if (page === null) await pause(this.#options.clock, storeAwayMs, signal);
          for (const event of page?.events ?? []) {
            if (signal.aborted) return;
            if (isMatch(filter, event)) yield event;
          }
          place = page?.place ?? place;
        } else
          await new Promise<void>((resolve) => {
            follower.wake = resolve;
            if (signal.aborted) resolve();
          });
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#followers.delete(follower);
    }
  }

  /**
   * Reads for this follower alone. Once it has read everything, the follower joins the shared read.
   * @returns null if the store is unreachable
   */
  async #catchUp(follower: Follower, place: EventPlace) {
    const { events, now } = this.#options;
    const { filter } = follower;
    try {
      const page = await events.read(place, { types: filter.types, tasks: tasksOf(filter) }, eventsPerRead, now());
      if (page.whole && place.reading === null) {
        // This read's snapshot is later than that of the last shared read, so the shared read has not seen more than this follower.
        this.#place = this.#followers.size === 0 ? page.place : this.#place;
        follower.left = false;
        follower.seen = page.place.seen;
        this.#followers.add(follower);
        this.#reading ??= this.#readOn();
      }
      return page;
    } catch (error) {
      if (!isStoreAway(error)) throw error;
      return null;
    }
  }

  async #takeTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work, work);
    this.#turn = turn.catch(() => undefined); // The caller of this read receives the error.
    return turn;
  }

  /** Reads for all followers until there are none. */
  async #readOn(): Promise<void> {
    const { clock, log } = this.#options;
    let wantedMono = clock.monotonic();
    for (;;) {
      await pause(clock, pollMs);
      for (let whole = false; !whole; )
        whole = await this.#takeTurn(async () => {
          if (this.#followers.size === 0) return true;
          try {
            return await this.#readForAll();
          } catch (error) {
            log.debug({ error: messageOf(error) }, "events could not be read");
            return true;
          }
        });
      if (this.#followers.size === 0) break;
      if (clock.monotonic() - wantedMono < wantAgainMs) continue;
      wantedMono = clock.monotonic();
      await this.#takeTurn(() => this.#wantAgain());
    }
    this.#reading = undefined;
  }

  async #readForAll(): Promise<boolean> {
    const { events, now } = this.#options;
    const filters = [...this.#followers].map(({ filter }) => filter);
    const tasks = filters.some(({ task }) => task === undefined)
      ? null
      : [...new Set(filters.flatMap((one) => tasksOf(one) ?? []))];
    const page = await events.read(this.#place as EventPlace, { types: this.#types(), tasks }, eventsPerRead, now());
    // After a recovery, the database may reuse transaction ids, so snapshots from before it cannot be compared with later ones.
    const wentBack = page.place.recovery !== this.#place?.recovery;
    this.#place = page.place;
    for (const follower of this.#followers) {
      if (wentBack) follower.seen = "";
      const news = page.events.filter(
        (event) => isMatch(follower.filter, event) && !isVisible(event.xid, follower.seen),
      );
      follower.waiting.push(...news);
      if (follower.waiting.length > waitingMost) {
        this.#followers.delete(follower);
        follower.left = true;
      }
      if (news.length > 0) follower.wake();
    }
    return page.whole;
  }

  #types(): EventType[] {
    return eventTypes.filter((type) => [...this.#followers].some(({ filter }) => filter.types.includes(type)));
  }

  async #wantAgain(): Promise<void> {
    const { events, now, log } = this.#options;
    try {
      const { whole } = await events.want(this.#types(), now() + wantedMs, this.#place ?? null, now());
      if (!whole) log.warn({}, "the store was away for so long that some events were not recorded");
    } catch (error) {
      log.debug({ error: messageOf(error) }, "events could not be read");
    }
  }
}

const feeds = new WeakMap<EventStore, EventFeed>();

/** Returns the feed that this process uses for the store; there is one per store. */
export function feedOf(options: EventFeedOptions): EventFeed {
  const known = feeds.get(options.events);
  if (known) return known;
  const feed = new EventFeed(options);
  feeds.set(options.events, feed);
  return feed;
}
