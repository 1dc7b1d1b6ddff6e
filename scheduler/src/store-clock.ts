import type { Clock } from "./clock.ts";

/** A difference above this is a step of somebody's clock, not drift, and is followed at once. */
const stepMs = 500;
/** Backwards, smaller differences are made up at this rate, so that store time never runs backwards by them. */
const slewRate = 0.05;
/** Quartz drifts by up to 0.1 ms a second, which blunts an old sample. */
const driftRate = 0.0001;
/** Timers set by a time that was further behind than this are set again. */
const tellMs = 0.2;
/** A sample this old is blunter than a new one would be. */
const sharpForMs = 3_000;

/**
 * The store's clock as this process knows it: this machine's monotonic clock plus an offset that round trips bound, so a step
 * of the local wall clock changes nothing. The store read its clock somewhere within a round trip, so each sample gives two
 * bounds of the offset, and the samples together the narrowest pair that all of them allow. `now` is the lower one: the store's
 * clock shows at least that, so nothing that waits for a time begins before it. The middle of a round trip, which one
 * would expect to be nearer, began runs a millisecond early, and five on a busy machine. What protects slots from a step of
 * the store's own clock is the ledger, not this.
 */
export class StoreClock {
  readonly #clock: Clock;
  #offset: number;
  /** As of the last sample. */
  #least = Number.NEGATIVE_INFINITY;
  #most = Number.POSITIVE_INFINITY;
  #sampledAt = Number.NEGATIVE_INFINITY;
  #slewedAt: number;
  #sharpening: { ask: () => Promise<number>; atMono: number } | undefined;
  #stepped: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#slewedAt = clock.monotonic();
    this.#offset = clock.wall() - this.#slewedAt;
  }

  /** Epoch milliseconds by the store's clock. */
  now(): number {
    return this.at(this.#clock.monotonic());
  }

  /** What it shows when this machine's monotonic clock shows that: now, or a moment ago. */
  at(mono: number): number {
    return mono + this.#slewed(mono);
  }

  /** How far `now` may be behind. */
  get errorMs(): number {
    return this.#most - this.#least;
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

  /** @param ask the store's clock, by a question as short as can be; asked by `sharpen` from now on */
  sharpenBy(ask: () => Promise<number>): void {
    this.#sharpening = { ask, atMono: Number.NEGATIVE_INFINITY };
  }

  /**
   * Called by whoever is to start something to the millisecond: sees to it that there is a sharp sample. Those of beats are not:
   * their answers come when their writes are on the disk. A process that starts nothing never asks.
   */
  sharpen(): void {
    const sharpening = this.#sharpening;
    const mono = this.#clock.monotonic();
    if (!sharpening || mono - sharpening.atMono < sharpForMs) return;
    sharpening.atMono = mono;
    // Unanswered it stays as blunt as it is, and whoever needs the store for more than its time tells of that.
    this.ask(sharpening.ask).catch(() => undefined);
  }

  /**
   * @param beganMono monotonic time before the question
   * @param storeMs the store's clock in the answer, epoch milliseconds
   * @param endedMono monotonic time after the answer
   */
  sample(beganMono: number, storeMs: number, endedMono: number): void {
    const [least, most] = [storeMs - endedMono, storeMs - beganMono];
    const first = this.#sampledAt === Number.NEGATIVE_INFINITY;
    const driftMs = first ? 0 : (endedMono - this.#sampledAt) * driftRate;
    const [knownLeast, knownMost] = [this.#least - driftMs, this.#most + driftMs];
    this.#slewed(this.#clock.monotonic());
    this.#sampledAt = endedMono;
    // Where they contradict each other a clock was stepped, or more has drifted than quartz does: the new one is right.
    const agrees = least <= knownMost && most >= knownLeast;
    this.#least = agrees ? Math.max(least, knownLeast) : least;
    this.#most = agrees ? Math.min(most, knownMost) : most;
    const behindMs = this.#least - this.#offset;
    // Forwards at once, for the store's clock is there already.
    if (behindMs > 0 || first || behindMs < -stepMs) this.#offset = this.#least;
    if (behindMs > tellMs || first || behindMs < -stepMs) for (const listener of this.#stepped) listener();
  }

  #slewed(atMono: number): number {
    const room = (atMono - this.#slewedAt) * slewRate;
    this.#slewedAt = atMono;
    if (this.#least < this.#offset && this.#least !== Number.NEGATIVE_INFINITY)
      this.#offset = Math.max(this.#least, this.#offset - room);
    return this.#offset;
  }
}
