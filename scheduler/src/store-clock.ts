import type { Clock } from "./clock.ts";

/** A difference above this is a step of somebody's clock, not drift, and is followed at once. */
const stepMs = 500;
/** Smaller differences are made up at this rate, so that store time never runs backwards by them. */
const slewRate = 0.05;
/** The first samples are followed at once: a process that is just starting may be slow, and decides nothing yet. */
const settlingSamples = 6;

/**
 * The store's clock as this process estimates it: this machine's monotonic clock plus a measured offset, so a step of
 * the local wall clock changes nothing. A sample is one round trip; the store answered somewhere inside it, so its
 * middle is wrong by at most half of it, and only samples that are sharper than what the drift since the last good one
 * allows are believed. What protects slots from a step of the store's own clock is the ledger, not this.
 */
export class StoreClock {
  readonly #clock: Clock;
  #offset: number;
  #target: number;
  #slewedAt: number;
  #errorMs = Number.POSITIVE_INFINITY;
  #sampledAt = 0;
  #samples = 0;
  #stepped: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#slewedAt = clock.monotonic();
    this.#offset = this.#target = clock.wall() - this.#slewedAt;
  }

  /** Epoch milliseconds by the store's clock. */
  now(): number {
    return this.#clock.monotonic() + this.#slewed();
  }

  /** Half the round trip of the sample in use: how far `now` may be off. */
  get errorMs(): number {
    return this.#errorMs;
  }

  /** How far this machine's wall clock is from the store's; positive when the store is ahead. */
  get wallOffsetMs(): number {
    return this.now() - this.#clock.wall();
  }

  /** Milliseconds from now until the store's clock shows `atMs`; 0 when it already does. */
  until(atMs: number): number {
    return Math.max(0, atMs - this.now());
  }

  /** Calls back when the clock stepped, so that timers set by it are set again. */
  onStep(listener: () => void): void {
    this.#stepped.push(listener);
  }

  /** One round trip. */
  async ask(storeMs: () => Promise<number>): Promise<void> {
    const began = this.#clock.monotonic();
    this.sample(began, await storeMs(), this.#clock.monotonic());
  }

  /**
   * @param beganMono monotonic time before the question
   * @param storeMs the store's clock in the answer, epoch milliseconds
   * @param endedMono monotonic time after the answer
   */
  sample(beganMono: number, storeMs: number, endedMono: number): void {
    this.#samples++;
    const errorMs = (endedMono - beganMono) / 2;
    const offset = storeMs - (beganMono + endedMono) / 2;
    // Quartz drifts by up to 0.1 ms a second, which blunts an old sample.
    const known = this.#errorMs + (endedMono - this.#sampledAt) * 0.0001;
    const disagrees = Math.abs(offset - this.#target) > errorMs + known;
    if (errorMs > known && !disagrees) return;
    this.#slewed();
    this.#errorMs = errorMs;
    this.#sampledAt = endedMono;
    this.#target = offset;
    if (this.#samples <= settlingSamples || Math.abs(offset - this.#offset) > stepMs) {
      this.#offset = offset;
      for (const listener of this.#stepped) listener();
    }
  }

  #slewed(): number {
    const at = this.#clock.monotonic();
    const room = (at - this.#slewedAt) * slewRate;
    this.#slewedAt = at;
    const missing = this.#target - this.#offset;
    this.#offset += Math.max(-room, Math.min(room, missing));
    return this.#offset;
  }
}
