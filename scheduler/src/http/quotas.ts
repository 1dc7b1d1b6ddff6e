import { type Quota, type QuotaStore, quotaOf, type Taken } from "../access/quota-store.ts";
import type { Clock } from "../base/clock.ts";
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { namespaceOf } from "../base/namespace.ts";
import { CachedRead } from "../store/cached-read.ts";

/** How long quotas and the counts of waiting runs are cached, in ms. */
const readMs = 1_000;
const minuteMs = 60_000;
/** Above this number of counters or cached namespaces, the oldest one is removed; a counter only if its minute is over. */
const rememberedMost = 10_000;

/** A run that is to be enqueued. */
export interface Asked {
  task: string;
  payloadBytes: number;
}

/** The runs in one namespace that a request would create. */
export interface Counted {
  /** null: runs in all namespaces, which are not counted against the quotas of namespaces. */
  namespace: string | null;
  runs: number;
  /** How many of these runs would be created within one minute. */
  aMinute: number;
  bytes: number;
}

/** Waiting runs that this server has enqueued since the store last counted waiting runs. */
type Added = Pick<Taken, "runs" | "bytes">;

interface Minute {
  fromMono: number;
  runs: number;
}

/**
 * Limits how many runs are enqueued: by a user through the API, in a namespace, and by the workers of a key. A minute begins with its first
 * enqueued run, and each server counts separately. The store counts the waiting runs of a namespace at most once a second; in between, this
 * server adds the runs that it has enqueued itself.
 */
export class Quotas {
  readonly #store: QuotaStore;
  readonly #clock: Clock;
  readonly #minutes = new Map<string, Minute>();
  readonly #taken = new Map<string, { untilMono: number; found: Promise<Taken>; added: Added }>();
  readonly #rows: CachedRead<Quota[]>;

  constructor(store: QuotaStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#rows = new CachedRead(clock, readMs, () => store.list());
  }

  /**
   * Counts all of the runs, or none of them if a quota would be exceeded.
   * @param ask not called if no user and no namespace has a quota
   * @throws QUOTA_EXCEEDED
   */
  take(user: string, ask: () => Promise<readonly Asked[]>): Promise<void> {
    return this.takeCounted(user, async () => {
      const of = new Map<string, Counted>();
      for (const { task, payloadBytes } of await ask()) {
        const namespace = namespaceOf(task);
        const { runs, bytes } = of.get(namespace) ?? { runs: 0, bytes: 0 };
        of.set(namespace, { namespace, runs: runs + 1, aMinute: runs + 1, bytes: bytes + payloadBytes });
      }
      return [...of.values()];
    });
  }

  /** Like `take`, for runs that have already been counted per namespace. @throws QUOTA_EXCEEDED */
  async takeCounted(user: string, count: () => Promise<readonly Counted[]>): Promise<void> {
    const rows = await this.#rows.get();
    if (!rows.some(({ kind }) => kind !== "key")) return;
    const counted = await count();
    const takenBy = new Map<string, { found: Taken; added: Added }>();
    for (const { namespace } of counted) {
      const quota = namespace === null ? undefined : quotaOf(rows, "namespace", namespace);
      if (namespace !== null && quota && limitsStore(quota)) takenBy.set(namespace, await this.taken(namespace, quota));
    }
    // No `await` from here on, so that of two concurrent requests the second one sees what the first one has counted.
    const inAMinute = counted.reduce((sum, { aMinute }) => sum + aMinute, 0);
    const takes = [this.#minute(quotaOf(rows, "user", user), user, inAMinute)];
    for (const { namespace, runs, aMinute, bytes } of counted) {
      if (namespace === null) continue;
      const quota = quotaOf(rows, "namespace", namespace);
      takes.push(this.#minute(quota, namespace, aMinute));
      const taken = takenBy.get(namespace);
      if (!quota || !taken) continue;
      const { found, added } = taken;
      const what = `the namespace ${JSON.stringify(namespace)}`;
      if (quota.waiting !== null && found.runs + added.runs + runs > quota.waiting)
        throw exceeded(`${what} has ${found.runs + added.runs} runs that wait, of ${quota.waiting} at most`, waitHint);
      if (quota.bytes !== null && found.bytes + added.bytes + bytes > quota.bytes)
        throw exceeded(
          `the payloads that wait in ${what} take ${found.bytes + added.bytes} bytes, of ${quota.bytes} at most`,
          waitHint,
        );
      if (quota.history !== null && found.history >= quota.history)
        throw exceeded(
          `the history of ${what} takes some ${found.history} bytes, of ${quota.history} at most`,
          "History past the retention is deleted day by day. Return and log less, or ask an admin for a larger quota: carillon quotas list.",
        );
      takes.push(() => Object.assign(added, { runs: added.runs + runs, bytes: added.bytes + bytes }));
    }
    for (const take of takes) take();
  }

  /** Counts runs that are enqueued by the workers of a key. @throws QUOTA_EXCEEDED */
  async takeOfKey(key: string, runs: number): Promise<void> {
    this.#minute(quotaOf(await this.#rows.get(), "key", key), key, runs)();
  }

  /** The maximum number of event streams that this server sends to a user at once. */
  async streamsMost(user: string): Promise<number> {
    return quotaOf(await this.#rows.get(), "user", user)?.streams ?? limits.streamsPerUser;
  }

  /**
   * The number of runs that this server has counted for the user, namespace or key in the current minute; 0 without such a quota.
   */
  used({ kind, name }: Pick<Quota, "kind" | "name">): number {
    const minute = this.#minutes.get(`${kind} ${name}`);
    return minute && !this.#isOver(minute) ? minute.runs : 0;
  }

  /** Returns what a namespace occupies in the store. @param quota waiting runs are counted only up to its `waiting` */
  taken(namespace: string, quota: Pick<Quota, "waiting">): Promise<{ found: Taken; added: Added }> {
    const nowMono = this.#clock.monotonic();
    let known = this.#taken.get(namespace);
    if (!known || known.untilMono <= nowMono) {
      const found = this.#store.taken(namespace, quota.waiting ?? limits.countedWaiting);
      known = { untilMono: nowMono + readMs, found, added: { runs: 0, bytes: 0 } };
      this.#taken.set(namespace, known);
      if (this.#taken.size > rememberedMost) this.#taken.delete(this.#taken.keys().next().value as string);
    }
    const { found, added } = known;
    return found.then(
      (counted) => ({ found: counted, added }),
      (error) => {
        this.#taken.delete(namespace);
        throw error;
      },
    );
  }

  /** Called after a quota was changed on this server: clears the caches. */
  forget(): void {
    this.#rows.forget();
    this.#taken.clear();
  }

  #isOver = ({ fromMono }: Minute) => fromMono + minuteMs <= this.#clock.monotonic();

  /**
   * Checks the quota per minute.
   * @returns a function that counts the runs, to be called if all other quotas allow them too
   * @throws QUOTA_EXCEEDED
   */
  #minute(quota: Quota | undefined, name: string, runs: number): () => void {
    if (!quota || quota.enqueues === null) return () => undefined;
    const key = `${quota.kind} ${name}`;
    const known = this.#minutes.get(key);
    const minute = known && !this.#isOver(known) ? known : { fromMono: this.#clock.monotonic(), runs: 0 };
    if (minute.runs + runs > quota.enqueues) {
      const leftS = Math.ceil((minute.fromMono + minuteMs - this.#clock.monotonic()) / 1_000);
      throw exceeded(
        `the ${quota.kind} ${JSON.stringify(name)} may enqueue ${quota.enqueues} runs a minute by a server, and has enqueued ${minute.runs}`,
        runs > quota.enqueues
          ? "Enqueue fewer at once, or ask an admin for a larger quota."
          : `Try again in ${leftS} s.`,
      );
    }
    return () => {
      this.#minutes.delete(key);
      this.#minutes.set(key, { ...minute, runs: minute.runs + runs });
      const [oldest] = this.#minutes;
      if (this.#minutes.size > rememberedMost && oldest && this.#isOver(oldest[1])) this.#minutes.delete(oldest[0]);
    };
  }
}

/** True if the quota limits the waiting runs, payload bytes or history of a namespace. */
export const limitsStore = ({ waiting, bytes, history }: Quota): boolean =>
  waiting !== null || bytes !== null || history !== null;

const waitHint = "Try again when some of them have begun, or ask an admin for a larger quota: carillon quotas list.";

const exceeded = (what: string, hint: string) => new CarillonError("QUOTA_EXCEEDED", what, { hint });
