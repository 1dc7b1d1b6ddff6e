import type { Clock } from "../base/clock.ts";
import { stepMs } from "../cluster/clock-votes.ts";

/** Backward corrections that are smaller than a step are applied at this rate, so that store time does not run backwards. */
const slewRate = 0.05;
/** Quartz clocks drift by up to 0.1 ms per second, so the error of a sample grows with its age. */
const driftRate = 0.0001;
/** Timers are set again if the time by which they were set was behind by more than this many ms. */
const tellMs = 0.2;
/** A sample older than this many ms is less precise than a new one would be. */
const sharpForMs = 3_000;

/** The store's clock, as the store reports it to processes that judge its steps. */
export interface StoreReading {
  /** Cluster time, epoch milliseconds: the store's clock plus `shiftMs`. */
  ms: number;
  /** The shift that the cluster adds to the store's clock; 0 unless that clock stepped and its new time is not adopted. */
  shiftMs: number;
  /** Rises with each change of `shiftMs`: a step that comes with a new number was decided by the cluster. */
  number: number;
}

/** A step of the store's clock that this process has seen and that the cluster has not judged yet. */
export interface HeldStep {
  /** By how many ms cluster time would jump if this process followed the step; positive: forward. */
  stepMs: number;
  /** How far `stepMs` may be too low, ms. */
  errorMs: number;
  /** The `number` of the readings that showed the step. */
  number: number;
  /** When this process saw the step, by this machine's monotonic clock; this time identifies the step. */
  sinceMono: number;
}

/**
 * Cluster time as this process knows it: this machine's monotonic clock plus an offset that is bounded by round trips, so a step of the
 * local wall clock changes nothing. The store read its clock at some moment within a round trip, so each sample gives two bounds of the
 * offset, and the samples together give the narrowest bounds that all of them allow. `now` uses the lower bound: the store's clock shows at
 * least that, so nothing that waits for a time begins too early. The middle of a round trip, which seems the better estimate, made runs
 * begin a millisecond early, and five on a busy machine.
 *
 * A step of the store's own clock by more than 500 ms is not followed: `now` goes on by the monotonic clock (`held` describes the step)
 * until a reading comes with a higher number, readings agree again, or `follow` is called. `ClockWatch` decides which. Readings that are
 * plain numbers are followed at once, because they come from a server, which has judged them.
 */
export class StoreClock {
  readonly #clock: Clock;
  #offset: number;
  /** The bounds at the last sample. */
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

  /** Epoch milliseconds by the store's clock. */
  now(): number {
    return this.at(this.#clock.monotonic());
  }

  /** The cluster time at which this machine's monotonic clock shows `mono`, which is now or a moment ago. */
  at(mono: number): number {
    return mono + this.#slewed(mono);
  }

  /** How far `now` may be behind the true value, ms. */
  get errorMs(): number {
    return this.#most - this.#least;
  }

  /** How far this machine's wall clock is from the store's, ms; positive when the store is ahead. */
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

  /** Calls back when a step was seen that is not followed for now. */
  onHold(listener: () => void): void {
    this.#holding.push(listener);
  }

  /** The step that is not followed for now; undefined: there is none. */
  get held(): HeldStep | undefined {
    if (!this.#held) return undefined;
    const { least, most, sinceMono } = this.#held;
    return { stepMs: least - this.#offset, errorMs: most - least, number: this.#number, sinceMono };
  }

  /** Follows the step if it is still held: this machine's monotonic clock was wrong, or stood still. */
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

  /** @param ask reads the store's clock by the shortest possible query; called by `sharpen` from now on */
  sharpenBy(ask: () => Promise<number | StoreReading>): void {
    this.#sharpening = { ask, atMono: Number.NEGATIVE_INFINITY };
  }

  /**
   * Called before runs are started to the millisecond: ensures that there is a precise sample. Samples of heartbeats are not precise,
   * because a heartbeat's answer waits until its write is on disk. A process that starts no runs never sends this query.
   */
  sharpen(): void {
    const sharpening = this.#sharpening;
    const mono = this.#clock.monotonic();
    if (!sharpening || mono - sharpening.atMono < sharpForMs) return;
    sharpening.atMono = mono;
    // Without an answer the clock stays as imprecise as it is; an unreachable store is reported by the callers that need more than its
    // time.
    this.ask(sharpening.ask).catch(() => undefined);
  }

  /**
   * @param beganMono monotonic time before the request
   * @param reading the store's clock in the answer; a plain number is epoch milliseconds, and is always followed
   * @param endedMono monotonic time after the answer
   */
  sample(beganMono: number, reading: number | StoreReading, endedMono: number): void {
    const told = typeof reading === "number" ? undefined : reading;
    const storeMs = told?.ms ?? (reading as number);
    const [least, most] = [storeMs - endedMono, storeMs - beganMono];
    const first = this.#sampledAt === Number.NEGATIVE_INFINITY;
    const driftMs = first ? 0 : (endedMono - this.#sampledAt) * driftRate;
    const [knownLeast, knownMost] = [this.#least - driftMs, this.#most + driftMs];
    if (told && !first && told.number <= this.#number) {
      // Requested before the shift changed and answered after that, so the reading uses the former shift.
      if (told.number < this.#number && beganMono <= this.#numberedAt) return;
      // An imprecise reading that is also consistent with the held step does not end it.
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
    // If the bounds contradict each other by less than a step, a clock drifted more than quartz does, and the new bounds are right.
    const agrees = least <= knownMost && most >= knownLeast;
    this.#least = agrees ? Math.max(least, knownLeast) : least;
    this.#most = agrees ? Math.min(most, knownMost) : most;
    const behindMs = this.#least - this.#offset;
    // Forward corrections apply at once, because the store's clock has already reached that time.
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
