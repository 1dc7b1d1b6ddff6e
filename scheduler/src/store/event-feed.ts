import { type Clock, pause } from "../base/clock.ts";
import { CarillonError, isStoreAway, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { namespaceOf } from "../base/namespace.ts";
import {
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
/** A follower with more waiting events than this leaves the shared read and reads by itself. */
const waitingMost = 1_000;
/**
 * The store records events of the wanted types for this long after a process's last request; the process repeats its request when a sixth
 * of the time is over.
 */
const wantedMs = 3_600_000;
const wantAgainMs = wantedMs / 6;

export interface EventFilter {
  types: readonly EventType[];
  task?: string | undefined;
  namespace?: string | undefined;
  /** A further condition on the task's name. */
  has?: ((task: string) => boolean) | undefined;
}

export interface EventFeedOptions {
  events: EventStore;
  clock: Clock;
  /** The store's time. */
  now: () => number;
  log: Log;
}

interface Follower {
  filter: EventFilter;
  /** The snapshot that shows the events that the follower received before it joined. */
  seen: string;
  waiting: StoredEvent[];
  /** True if the follower does not keep up: it must read by itself, from its last event on. */
  left: boolean;
  wake: () => void;
}

export const isMatch = ({ types, task, namespace, has }: EventFilter, event: StoredEvent): boolean =>
  types.includes(event.type) &&
  (task === undefined || event.task === task) &&
  (namespace === undefined || namespaceOf(event.task) === namespace) &&
  (has?.(event.task) ?? true);

export const tasksOf = ({ task }: EventFilter) => (task === undefined ? null : [task]);

/**
 * The events of the cluster, for all followers in this process. One statement reads the store for all of them; without followers nothing is
 * read. A follower that starts from an earlier place, or that does not keep up, reads by itself until it has reached the place of the
 * others.
 */
export class EventFeed {
  readonly #options: EventFeedOptions;
  readonly #followers = new Set<Follower>();
  #place: EventPlace | undefined;
  #reading: Promise<void> | undefined;
  /** The last read under way. Reads run one after the other; a follower joins between two of them. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: EventFeedOptions) {
    this.#options = options;
  }

  /**
   * Makes the store record the events from now on. @param after a place to continue from @returns the place to follow from
   * @throws CURSOR_GONE: not all events after that place are in the store; STORE_…
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

  /** Yields each event after the place, at least once, until the signal aborts. Waits while the store is away. */
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

  /** Reads for this follower alone; at the end the follower joins the others. @returns null: the store is away */
  async #catchUp(follower: Follower, place: EventPlace) {
    const { events, now } = this.#options;
    const { filter } = follower;
    try {
      const page = await events.read(place, { types: filter.types, tasks: tasksOf(filter) }, eventsPerRead, now());
      if (page.whole && place.reading === null) {
        // This read took its snapshot after the others' last read, so their snapshot shows nothing that this one does not show.
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
    this.#turn = turn.catch(() => undefined); // the caller of this turn receives the error
    return turn;
  }

  /** Reads for all followers, as long as there are followers. */
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
    // After a recovery, transaction numbers may be given out a second time, so snapshots from before it are not comparable.
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

/** The feed of this process for the store. */
export function feedOf(options: EventFeedOptions): EventFeed {
  const known = feeds.get(options.events);
  if (known) return known;
  const feed = new EventFeed(options);
  feeds.set(options.events, feed);
  return feed;
}
