import { randomUUID } from "node:crypto";
import { type Clock, pause, systemClock } from "../base/clock.ts";
import { CarillonError, isStoreAway } from "../base/errors.ts";
import type { GraceLockStore } from "../cluster/grace-lock-store.ts";

export interface GraceLockRowOptions {
  /**
   * A holder that sends no heartbeat for this long, in ms, loses the lock. The holder stops relying on the lock a little earlier. Default
   * 15,000.
   */
  readonly timeoutMs?: number;
  /** The interval between two heartbeats of the holder, in ms. Default 5,000. */
  readonly beatMs?: number;
  /** The interval at which candidates without the lock read the row, in ms. Default 1,000. */
  readonly pollMs?: number;
  readonly clock?: Clock;
}

/** The state of the row as read by `look`; the caller passes it to `take`. */
export interface RowSight<Kept extends object> {
  readonly held: boolean;
  readonly record: Kept | undefined;
  readonly version: string;
  readonly holder: string | null;
  readonly rowVersion: number | null;
}

/** For each store, the holder ids under which this process contends for locks. */
const livesOf = new WeakMap<GraceLockStore, Set<string>>();

/**
 * Time in ms between the moment when the holder stops relying on the lock and the earliest moment when another process may
 * remove it; at most a quarter of the timeout.
 */
const marginMs = 500;
/**
 * A failed heartbeat or write of the holder is retried after this many ms, or after a tenth of the usual interval if that is
 * shorter; a failed read after this many ms, or after the usual interval if that is shorter.
 */
const hurryMs = 250;

/**
 * A grace lock in PostgreSQL. Has the interface that `GraceLock` of `@carillon/zookeeper` requires, so that neither package imports the
 * other. The lock is a row with the holder's id and a heartbeat counter. A candidate removes the holder if the counter has not changed for
 * the holder's timeout, by the candidate's own monotonic clock, while the candidate could read the store without interruption. The removal
 * is a compare-and-set on the counter, so a heartbeat that arrives first wins.
 */
export class GraceLockRow<Kept extends object> {
  readonly name: string;
  readonly lives: Set<string>;
  readonly #store: GraceLockStore;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #beatMs: number;
  readonly #pollMs: number;
  /** Holder ids of this process, current and former, that may be in the row; `#see` removes former ones from the row. */
  readonly #over = new Set<string>();
  #holding: HeldRow<Kept> | undefined;
  /** The holder id that `take` is writing or has just written; `#see` must not treat it as a former holder id. */
  #taking: string | undefined;
  #silence: { holder: string; beat: number; sinceMono: number } | undefined;

  /** @throws OPTION_INVALID */
  constructor(store: GraceLockStore, name: string, options: GraceLockRowOptions = {}) {
    const { timeoutMs = 15_000, beatMs = 5_000, pollMs = 1_000, clock = systemClock } = options;
    for (const [option, value] of Object.entries({ timeoutMs, beatMs, pollMs })) {
      if (Number.isFinite(value) && value > 0) continue;
      throw new CarillonError("OPTION_INVALID", `the grace lock's ${option} is ${value}`, {
        hint: "Give a number of milliseconds above 0.",
      });
    }
    if (beatMs * 2 > timeoutMs) {
      throw new CarillonError(
        "OPTION_INVALID",
        `the grace lock beats every ${beatMs} ms with a timeout of ${timeoutMs}`,
        {
          hint: "Make timeoutMs at least twice beatMs, so that one lost beat is no silence.",
        },
      );
    }
    this.#store = store;
    this.name = name;
    this.lives = livesOf.get(store) ?? new Set();
    livesOf.set(store, this.lives);
    this.#timeoutMs = timeoutMs;
    this.#beatMs = beatMs;
    this.#pollMs = pollMs;
    this.#clock = clock;
  }

  /** Reads the row; retries while the store is unreachable. */
  async look(signal?: AbortSignal): Promise<RowSight<Kept>> {
    for (;;) {
      signal?.throwIfAborted();
      try {
        const seen = await this.#see();
        if (seen) return seen;
      } catch (error) {
        // The interval in which the store could not be read does not count as time without heartbeats.
        this.#silence = undefined;
        if (!isStoreAway(error)) throw error;
        await pause(this.#clock, Math.min(hurryMs, this.#pollMs), signal);
      }
    }
  }

  async take(sight: RowSight<Kept>, record: Kept): Promise<HeldRow<Kept> | undefined> {
    const holder = randomUUID();
    const { rowVersion, holder: replaced } = sight;
    this.#taking = holder;
    const beganMono = this.#clock.monotonic();
    try {
      const taken = await this.#store.take(this.name, rowVersion, { holder, replaced }, this.#timeoutMs, record);
      if (!taken) return undefined;
      this.#over.add(holder);
      const { name } = this;
      const terms = { name, holder, fence: BigInt(taken.fence), beatMs: this.#beatMs, timeoutMs: this.#timeoutMs };
      this.#holding = new HeldRow(this.#store, this.#clock, terms, beganMono);
      return this.#holding;
    } catch (error) {
      if (!isStoreAway(error)) throw error;
      // The row may have been written although the answer was lost; then the next `look` finds this holder id and removes it.
      this.#over.add(holder);
      return undefined;
    } finally {
      this.#taking = undefined;
    }
  }

  /**
   * Reads the row every `pollMs` while this process does not hold the lock, and calls `changed` after the first read and whenever a later
   * read differs from the one before.
   * @returns a function that stops the reads and ends this process's hold
   */
  watch(changed: () => void): () => void {
    const stop = new AbortController();
    void this.#poll(changed, stop.signal);
    return () => {
      stop.abort();
      this.#holding?.stop();
    };
  }

  async #poll(changed: () => void, signal: AbortSignal): Promise<void> {
    let before: string | undefined;
    while (!signal.aborted) {
      await pause(this.#clock, this.#pollMs, signal);
      if (signal.aborted) return;
      if (this.#holding && !this.#holding.signal.aborted) continue;
      let now: string;
      try {
        const { version, held } = await this.look(signal);
        now = `${version} ${held}`;
      } catch {
        now = "unknown"; // the watch goes on; a caller that acquires the lock gets the same error
      }
      if (now !== before && !signal.aborted) changed();
      before = now;
    }
  }

  /** Reads the row once. @returns undefined if this call tried to remove a dead or former holder, so the caller must read again */
  async #see(): Promise<RowSight<Kept> | undefined> {
    const row = await this.#store.read(this.name);
    if (!row) return { held: false, record: undefined, version: "none", holder: null, rowVersion: null };
    const { holder, beat, version } = row;
    for (const over of this.#over) if (over !== holder && over !== this.#holding?.holder) this.#over.delete(over);
    if (holder === null) this.#silence = undefined;
    else if (this.#taking === holder || this.#over.has(holder)) {
      const ours = this.#holding?.holder === holder && this.#holding.remainingMs > 0;
      if (!ours && this.#taking !== holder) {
        await this.#store.vacate(this.name, holder, null);
        return undefined;
      }
    } else if (this.#silence?.holder !== holder || this.#silence.beat !== beat) {
      this.#silence = { holder, beat, sinceMono: this.#clock.monotonic() };
    } else if (this.#clock.monotonic() - this.#silence.sinceMono >= row.timeoutMs) {
      await this.#store.vacate(this.name, holder, beat);
      this.#silence = undefined;
      return undefined;
    }
    return { held: holder !== null, record: row.record as Kept, version: String(version), holder, rowVersion: version };
  }
}

interface Terms {
  readonly name: string;
  readonly holder: string;
  readonly fence: bigint;
  readonly beatMs: number;
  readonly timeoutMs: number;
}

/**
 * This process's hold on the row. It ends by `release` or `stop`, if heartbeats fail for too long, or if another candidate
 * removes this holder.
 */
export class HeldRow<Kept extends object> {
  readonly holder: string;
  readonly fence: bigint;
  readonly #store: GraceLockStore;
  readonly #clock: Clock;
  readonly #terms: Terms;
  readonly #end = new AbortController();
  #provedMono: number;
  /** True while a release is in progress: the row may already be without holder although the answer has not arrived. */
  #releasing = false;
  #cancelTrust: () => void = () => undefined;

  /** @param provedMono the time of the monotonic clock when the request that took the lock was sent */
  constructor(store: GraceLockStore, clock: Clock, terms: Terms, provedMono: number) {
    this.#store = store;
    this.#clock = clock;
    this.#terms = terms;
    this.holder = terms.holder;
    this.fence = terms.fence;
    this.#provedMono = provedMono;
    void this.#beat();
    this.#watchTrust();
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  get remainingMs(): number {
    if (this.#end.signal.aborted) return 0;
    const { timeoutMs } = this.#terms;
    const trustMs = timeoutMs - Math.min(marginMs, timeoutMs / 4);
    return Math.max(0, this.#provedMono + trustMs - this.#clock.monotonic());
  }

  seenIn(sight: { readonly version: string }): boolean {
    return (sight as RowSight<Kept>).holder === this.holder;
  }

  write(record: Kept): Promise<boolean> {
    return this.#write(record, false);
  }

  async release(record: Kept): Promise<boolean> {
    this.#releasing = true;
    try {
      const released = await this.#write(record, true);
      this.stop();
      return released;
    } finally {
      this.#releasing = false;
    }
  }

  stop(): void {
    this.#cancelTrust();
    this.#end.abort();
  }

  /**
   * Repeats the write until its result is known or the hold has ended. Repeating it is harmless: it writes the same record
   * under the same holder id.
   * @returns false if the lock was lost, or if the hold ended before the result was known
   */
  async #write(record: Kept, release: boolean): Promise<boolean> {
    for (let again = false; this.remainingMs > 0; again = true) {
      try {
        const written = await this.#store.write(this.#terms.name, this.holder, record, release);
        // A repeated release returns false if the first attempt released the lock and its answer was lost, or if the lock had been lost.
        return written || (release && again && (await this.#wasReleased(record)));
      } catch (error) {
        if (!isStoreAway(error)) throw error;
        await pause(this.#clock, this.#hurryMs, this.#end.signal);
      }
    }
    return false;
  }

  async #wasReleased(record: Kept): Promise<boolean> {
    const row = await this.#store.read(this.#terms.name);
    return row?.holder === null && row.fence === Number(this.fence) && sameJson(row.record, record);
  }

  async #beat(): Promise<void> {
    const { name, beatMs } = this.#terms;
    for (let waitMs = beatMs; ; ) {
      await pause(this.#clock, waitMs, this.#end.signal);
      if (this.#end.signal.aborted) return;
      const beganMono = this.#clock.monotonic();
      try {
        if (!(await this.#store.beat(name, this.holder))) {
          if (!this.#releasing) return this.stop();
          continue;
        }
        if (this.remainingMs === 0) return this.stop(); // the answer came after the time until which the lock was certainly held
        this.#provedMono = beganMono;
        waitMs = beatMs;
      } catch {
        waitMs = this.#hurryMs; // the request failed; `#watchTrust` ends the hold when its time is over
      }
    }
  }

  get #hurryMs(): number {
    return Math.min(hurryMs, this.#terms.beatMs / 10);
  }

  #watchTrust(): void {
    this.#cancelTrust = this.#clock.after(this.remainingMs, () => {
      if (this.remainingMs > 0) this.#watchTrust();
      else this.stop();
    });
  }
}

/** Compares two JSON objects regardless of the order of their keys, because the database does not preserve that order. */
function sameJson(a: object, b: object): boolean {
  const sorted = (value: object) =>
    JSON.stringify(value, (_, inner) =>
      inner && typeof inner === "object" ? Object.fromEntries(Object.entries(inner).sort()) : inner,
    );
  return sorted(a) === sorted(b);
}
