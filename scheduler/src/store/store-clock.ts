import type { Clock } from "../base/clock.ts";
import { stepMs } from "../cluster/clock-votes.ts";

/** The rate at which backward corrections smaller than a step are applied, so that store time does not run backwards. */
const slewRate = 0.05;
/** Quartz clocks drift by up to 0.1 ms per second, so the possible error of a sample grows with its age. */
const driftRate = 0.0001;
/** If the clock moves forward by more than this, in ms, timers are set again. */
const tellMs = 0.2;
/** The age in ms at which a sample has become less precise than a new one would be. */
const sharpForMs = 3_000;

/** A reading of the store's clock, with what a process needs in order to recognise the clock's steps. */
export interface StoreReading {
  /** Cluster time, epoch milliseconds: the store's clock plus `shiftMs`. */
  ms: number;
  /** The shift that the cluster adds to the store's clock, in ms; 0 unless that clock has jumped and its new time was not adopted. */
  shiftMs: number;
  /** Rises with each change of `shiftMs`. If a step comes with a higher number, the cluster has decided on it. */
  number: number;
}

/** A step of the store's clock that this process has detected and on which the cluster has not decided yet. */
export interface HeldStep {
  /** By how many ms cluster time would jump if this process followed the step; positive means forward. */
  stepMs: number;
  /** By how much `stepMs` may be too low, in ms. */
  errorMs: number;
  /** The `number` of the readings that showed the step. */
  number: number;
  /** When this process detected the step, by this machine's monotonic clock. This time identifies the step. */
  sinceMono: number;
}

/**
 * Cluster time as this process estimates it: this machine's monotonic clock plus an offset with bounds from round trips, so that a step of
 * the local wall clock changes nothing. The store read its clock at some moment within a round trip, so each sample gives two bounds of the
 * offset, and all samples together give the narrowest bounds. `now` uses the lower bound: the store's clock shows at least that time, so
 * nothing that waits for a time begins too early.
 *
 * A step of the store's own clock by more than 500 ms is not followed: `now` continues by the monotonic clock (and `held` describes the
 * step) until a reading has a higher number, readings agree again, or `ClockWatch` decides to call `follow`. Readings that are plain
 * numbers are followed at once, because they come from a server, which has already decided on steps.
 */
export class StoreClock {
  readonly #clock: Clock;
  #offset: number;
  /** The bounds of the offset as of the last sample. */
  #least = Number.NEGATIVE_INFINITY;
  #most = Number.POSITIVE_INFINITY;
  #sampledAt = Number.NEGATIVE_INFINITY;
  #slewedAt: number;
  #sharpening: { ask: () => Promise<number | StoreReading>; atMono: number } | undefined;
  #stepped: (() => void)[] = [];
  #number = Number.NEGATIVE_INFINITY;
  /** When the first reading with `#number` arrived. */
  #numberedAt = Number.NEGATIVE_INFINITY;
  #held: { least: number; most: number; sinceMono: number } | undefined;
  readonly #holding: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#slewedAt = clock.monotonic();
    this.#offset = clock.wall() - this.#slewedAt;
  }

  /** Returns the estimated cluster time, in epoch milliseconds. */
  now(): number {
    return this.at(this.#clock.monotonic());
  }

  /** Returns the cluster time at which this machine's monotonic clock shows `mono`, a time close to now. */
  at(mono: number): number {
    return mono + this.#slewed(mono);
  }

  /** By how much `now` may be behind the true cluster time, in ms. */
  get errorMs(): number {
    return this.#most - this.#least;
  }

  /** The difference between cluster time and this machine's wall clock, in ms; positive if cluster time is ahead. */
  get wallOffsetMs(): number {
    return this.now() - this.#clock.wall();
  }

  /** Returns the milliseconds from now until cluster time reaches `atMs`; 0 if it already has. */
  until(atMs: number): number {
    return Math.max(0, atMs - this.now());
  }

  /**
   * Registers a listener that is called when this clock was put forward noticeably or has followed a step, so that timers can be set again.
   */
  onStep(listener: () => void): void {
    this.#stepped.push(listener);
  }

  /** Registers a listener that is called when a step is detected and not followed yet. */
  onHold(listener: () => void): void {
    this.#holding.push(listener);
  }

  /** The step that was detected and is not followed yet; undefined if there is none. */
  get held(): HeldStep | undefined {
    if (!this.#held) return undefined;
    const { least, most, sinceMono } = this.#held;
    return { stepMs: least - this.#offset, errorMs: most - least, number: this.#number, sinceMono };
  }

  /** Follows the step if it is still held, because this machine's monotonic clock was wrong or stopped for a time. */
  follow({ sinceMono }: HeldStep): void {
    if (this.#held?.sinceMono !== sinceMono) return;
    const { least, most } = this.#held;
    this.#held = undefined;
    [this.#least, this.#most, this.#offset] = [least, most, least];
    this.#sampledAt = this.#slewedAt = this.#clock.monotonic();
    for (const listener of this.#stepped) listener();
  }

  /** Takes a sample with one round trip. */
  async ask(read: () => Promise<number | StoreReading>): Promise<void> {
    const began = this.#clock.monotonic();
    this.sample(began, await read(), this.#clock.monotonic());
  }

  /** Sets how `sharpen` reads the store's clock. @param ask reads it with the shortest possible query */
  sharpenBy(ask: () => Promise<number | StoreReading>): void {
    this.#sharpening = { ask, atMono: Number.NEGATIVE_INFINITY };
  }

  /**
   * Called before runs are started to the millisecond, to get a precise sample. Samples from heartbeats are not precise, because the answer
   * to a heartbeat waits until its write is on disk. A process that starts no runs never sends this query.
   */
  sharpen(): void {
    const sharpening = this.#sharpening;
    const mono = this.#clock.monotonic();
    if (!sharpening || mono - sharpening.atMono < sharpForMs) return;
    sharpening.atMono = mono;
    // An error leaves the clock as imprecise as it is. Other callers report a store that cannot be reached.
    this.ask(sharpening.ask).catch(() => undefined);
  }

  /**
   * Updates the offset with one reading.
   * @param beganMono monotonic time before the request, in ms
   * @param reading the answer; a plain number is cluster time in epoch milliseconds, and is always followed
   * @param endedMono monotonic time after the answer, in ms
   */
  sample(beganMono: number, reading: number | StoreReading, endedMono: number): void {
    const told = typeof reading === "number" ? undefined : reading;
    const storeMs = told?.ms ?? (reading as number);
    const [least, most] = [storeMs - endedMono, storeMs - beganMono];
    const first = this.#sampledAt === Number.NEGATIVE_INFINITY;
    const driftMs = first ? 0 : (endedMono - this.#sampledAt) * driftRate;
    const [knownLeast, knownMost] = [this.#least - driftMs, this.#most + driftMs];
    if (told && !first && told.number <= this.#number) {
      // The reading was requested before the shift changed and was answered afterwards, so it contains the former shift.
      if (told.number < this.#number && beganMono <= this.#numberedAt) return;
      // An imprecise reading may be consistent with both the held step and the time before the step. Such a reading does not end the step.
      const isHeld = this.#held && least <= this.#held.most && most >= this.#held.least;
      if (isHeld || least > knownMost + stepMs || most < knownLeast - stepMs) {
        this.#hold(least, most, endedMono);
        return;
      }
    }
    if (told && told.number !== this.#number) [this.#number, this.#numberedAt] = [told.number, endedMono];
    this.#held = undefined;
    this.#slewed(this.#clock.monotonic());
    this.#sampledAt = endedMono;
    // If the bounds contradict each other by less than a step, a clock drifts by more than quartz clocks do, and the new bounds are right.
    const agrees = least <= knownMost && most >= knownLeast;
    this.#least = agrees ? Math.max(least, knownLeast) : least;
    this.#most = agrees ? Math.min(most, knownMost) : most;
    const behindMs = this.#least - this.#offset;
    // Forward corrections are applied at once, because the store's clock has already reached that time.
    if (behindMs > 0 || first || behindMs < -stepMs) this.#offset = this.#least;
    if (behindMs > tellMs || first || behindMs < -stepMs) for (const listener of this.#stepped) listener();
  }

  #hold(least: number, most: number, mono: number): void {
    const known = this.#held;
    if (known && least <= known.most + stepMs && most >= known.least - stepMs) {
      const agrees = least <= known.most && most >= known.least;
      known.least = agrees ? Math.max(least, known.least) : least;
      known.most = agrees ? Math.min(most, known.most) : most;
      return;
    }
    this.#held = { least, most, sinceMono: mono };
    for (const listener of this.#holding) listener();
  }

  #slewed(atMono: number): number {
    const room = (atMono - this.#slewedAt) * slewRate;
    this.#slewedAt = atMono;
    if (this.#least < this.#offset && this.#least !== Number.NEGATIVE_INFINITY)
      this.#offset = Math.max(this.#least, this.#offset - room);
    return this.#offset;
  }
}
