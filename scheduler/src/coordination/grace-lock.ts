import { randomUUID } from "node:crypto";
import { type Clock, pause, systemClock } from "../base/clock.ts";
import { CarillonError, isStoreAway } from "../base/errors.ts";
import type { GraceLockStore } from "../cluster/grace-lock-store.ts";

export interface GraceLockRowOptions {
  /** How long a holder may be silent, ms. The holder itself stops relying on the lock a little earlier. Default 15,000. */
  readonly timeoutMs?: number;
  /** The interval between two beats of the holder, ms. Default 5,000. */
  readonly beatMs?: number;
  /** The interval at which contenders without the lock look at the row, ms. Default 1,000. */
  readonly pollMs?: number;
  readonly clock?: Clock;
}

/** The result of a look at the row, which the caller passes back to `take`. */
export interface RowSight<Kept extends object> {
  readonly held: boolean;
  readonly record: Kept | undefined;
  readonly version: string;
  readonly holder: string | null;
  readonly rowVersion: number | null;
}

/** The holdings of this process that contend on each store. */
const livesOf = new WeakMap<GraceLockStore, Set<string>>();

/**
 * Safety between the moment when the holder stops relying on the lock and the earliest moment at which another process may vacate the row.
 */
const marginMs = 500;
/** A beat or a look that failed is tried again after this many ms, or after a tenth of the usual interval if that is shorter. */
const hurryMs = 250;

/**
 * The place of a grace lock in PostgreSQL. It has the shape that `GraceLock` of `@carillon/zookeeper` requires, so that neither package
 * imports the other. The lock is a row with the holder's name and a heartbeat. A contender that sees the beat stand still for the holder's
 * timeout by its own monotonic clock, without losing sight of the store meanwhile, vacates the row by compare-and-set on that beat; so a
 * beat that arrives first wins.
 */
export class GraceLockRow<Kept extends object> {
  readonly name: string;
  readonly lives: Set<string>;
  readonly #store: GraceLockStore;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #beatMs: number;
  readonly #pollMs: number;
  /** Holdings of this process that may be in the row although they are over. */
  readonly #over = new Set<string>();
  #holding: HeldRow<Kept> | undefined;
  /** The holder that this process is writing into the row, or has written: it must not be mistaken for a holding that is over. */
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

  /** Reads the row; waits as long as the store is away. */
  async look(signal?: AbortSignal): Promise<RowSight<Kept>> {
    for (;;) {
      signal?.throwIfAborted();
      try {
        const seen = await this.#see();
        if (seen) return seen;
      } catch (error) {
        // A silence that this process has not watched without interruption proves nothing.
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
      // The take may have been carried out; in that case the next look finds this holder, and vacates the row.
      this.#over.add(holder);
      return undefined;
    } finally {
      this.#taking = undefined;
    }
  }

  /** Looks every `pollMs` while this process does not hold the lock. */
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
        now = "unknown"; // a caller that acquires the lock gets the same error, so the watch only goes on looking
      }
      if (now !== before && !signal.aborted) changed();
      before = now;
    }
  }

  /** @returns undefined when the row was vacated just now, so that the caller must look again */
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

/** A holding of the row. It lasts until the heartbeat fails for too long or another contender vacates the row. */
export class HeldRow<Kept extends object> {
  readonly holder: string;
  readonly fence: bigint;
  readonly #store: GraceLockStore;
  readonly #clock: Clock;
  readonly #terms: Terms;
  readonly #end = new AbortController();
  #provedMono: number;
  /** True if the row may be empty because of this process's own release, whose answer has not arrived. */
  #releasing = false;
  #cancelTrust: () => void = () => undefined;

  /** @param provedMono when the take began, by the monotonic clock */
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

  /** Retries the write until its result is known; writing the same record under the same holder twice does no harm. */
  async #write(record: Kept, release: boolean): Promise<boolean> {
    for (let again = false; this.remainingMs > 0; again = true) {
      try {
        const written = await this.#store.write(this.#terms.name, this.holder, record, release);
        // A release whose answer was lost has emptied the row.
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
        if (this.remainingMs === 0) return this.stop(); // the time for which the lock was certain had passed before the answer came
        this.#provedMono = beganMono;
        waitMs = beatMs;
      } catch {
        waitMs = this.#hurryMs; // the store is away; the holding stops being certain when its time is over
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

/** Compares without regard to the order of keys, because the database does not keep it. */
function sameJson(a: object, b: object): boolean {
  const sorted = (value: object) =>
    JSON.stringify(value, (_, inner) =>
      inner && typeof inner === "object" ? Object.fromEntries(Object.entries(inner).sort()) : inner,
    );
  return sorted(a) === sorted(b);
}
