/**
 * The source of time for the engine, so that the same engine runs on virtual time. Apart from this file, only code outside the
 * engine, such as the command line, reads a system clock or sets a timer. Monotonic time measures durations; due times are judged by the
 * store's clock.
 */
export interface Clock {
  /** Returns monotonic time in ms with fractions; it counts from an arbitrary zero and never jumps. */
  monotonic(): number;
  /** Returns this machine's wall clock in epoch ms; it may jump. */
  wall(): number;
  /** Calls `fire` once, after at least `ms`. @returns a function that cancels the call */
  after(ms: number, fire: () => void): () => void;
  /**
   * True for a virtual clock, which moves forward in leaps and fires no timer during a leap. On such a clock a late timer does not indicate
   * that the event loop was blocked.
   */
  readonly leaps?: true;
  /** Returns for how long the event loop has executed code so far, in ms; absent on a virtual clock, on which code takes no time. */
  busyMs?(): number;
}

/** Node's timers overflow above this number of ms. */
const longestTimeoutMs = 2 ** 31 - 1;

/**
 * Waits of up to this many ms poll the clock in turns of the event loop, which take some µs each, because a timer would take at least a
 * whole ms.
 */
const turnedMs = 0.35;

/** The timers and the clock of the runtime on which a `Clock` is built. */
interface Timing extends Pick<typeof globalThis, "setTimeout" | "clearTimeout" | "setImmediate" | "clearImmediate"> {
  performance: Pick<typeof globalThis.performance, "now">;
}

/** The function that existed when this module was loaded: fake timers replace it by one that returns nothing. Browsers have none. */
const eventLoop = performance.eventLoopUtilization?.bind(performance);

export const systemClock: Clock = clockOn(globalThis);

/**
 * `systemClock` with the timers that existed when this module was loaded, so that a test's fake timers do not affect it. For
 * carillon/testing.
 */
export const unfakedClock: Clock = clockOn({
  setTimeout,
  clearTimeout,
  setImmediate,
  clearImmediate,
  performance: { now: performance.now.bind(performance) },
});

/** As `systemClock`, but its monotonic time has the same zero in all threads and processes of this machine. */
export const machineClock: Clock = clockOn({
  ...globalThis,
  performance: { now: () => Number(process.hrtime.bigint()) / 1e6 },
});

function clockOn(timing: Timing): Clock {
  return {
    monotonic: () => timing.performance.now(),
    wall: () => Date.now(),
    busyMs: () => eventLoop().active,
    after(ms, fire) {
      if (ms > 0 && ms <= turnedMs) return afterTurns(timing, timing.performance.now() + ms, fire);
      let handle: NodeJS.Timeout;
      const arm = (left: number) => {
        handle = timing.setTimeout(
          () => (left > longestTimeoutMs ? arm(left - longestTimeoutMs) : fire()),
          Math.min(left, longestTimeoutMs),
        );
      };
      arm(Math.max(0, ms));
      return () => timing.clearTimeout(handle);
    },
  };
}

/** Calls `fire` once `atMono` has come. It polls in turns of the event loop, so that other work proceeds in between. */
function afterTurns(timing: Timing, atMono: number, fire: () => void): () => void {
  const turn = () => {
    if (timing.performance.now() >= atMono) fire();
    else handle = timing.setImmediate(turn);
  };
  let handle = timing.setImmediate(turn);
  return () => timing.clearImmediate(handle);
}

/** Resolves after `ms`, or at once when `signal` aborts; it never rejects, so the caller checks the signal. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(ms, end);
    signal?.addEventListener("abort", end, { once: true });
  });
}

/**
 * Calls `work` with a signal that aborts together with `signal`, or after `ms`.
 * @param tooLong returns the reason with which the signal aborts after `ms`
 * @throws what `work` throws
 */
export async function limitedTo<Result>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
  tooLong: () => Error = () => new Error("it took too long"),
): Promise<Result> {
  const overdue = new AbortController();
  const cancel = clock.after(ms, () => overdue.abort(tooLong()));
  try {
    return await work(AbortSignal.any([signal, overdue.signal]));
  } finally {
    cancel();
  }
}

/** Resolves with true if `work` resolves or rejects within `ms`, else with false. */
export async function settlesWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  const settled = new AbortController();
  const end = () => settled.abort();
  work.then(end, end);
  await pause(clock, ms, settled.signal);
  return settled.signal.aborted;
}

/**
 * Lets a loop sleep between its steps. `wake` ends the sleep early; a wake while the loop is not asleep makes its next sleep return at
 * once.
 */
export class Sleeper {
  readonly #clock: Clock;
  #woken = false;
  #asleep: AbortController | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wake(): void {
    if (this.#asleep) this.#asleep.abort();
    else this.#woken = true;
  }

  /** Resolves after `ms`, when `wake` is called, or at once if it was called since the last sleep. Only one caller may sleep at a time. */
  async sleep(ms: number): Promise<void> {
    const woken = this.#woken;
    this.#woken = false;
    if (woken) return;
    this.#asleep = new AbortController();
    await pause(this.#clock, ms, this.#asleep.signal);
    this.#asleep = undefined;
  }
}

/**
 * One timer for many wake-up requests. It fires at the earliest requested time and forgets the later requests; its owner
 * requests them again after the timer has fired.
 */
export class EarliestTimer {
  readonly #clock: Clock;
  readonly #fire: () => void;
  #atMono = Number.POSITIVE_INFINITY;
  #cancel: () => void = () => undefined;

  constructor(clock: Clock, fire: () => void) {
    this.#clock = clock;
    this.#fire = fire;
  }

  get armed(): boolean {
    return this.#atMono !== Number.POSITIVE_INFINITY;
  }

  /** Requests a wake-up in `ms`, unless an earlier wake-up is already set. */
  within(ms: number): void {
    const atMono = this.#clock.monotonic() + ms;
    if (atMono >= this.#atMono) return;
    this.#cancel();
    this.#atMono = atMono;
    this.#cancel = this.#clock.after(ms, () => {
      this.#atMono = Number.POSITIVE_INFINITY;
      this.#fire();
    });
  }

  clear(): void {
    this.#cancel();
    this.#atMono = Number.POSITIVE_INFINITY;
  }

  /** Cancels the timer; later requests are ignored. */
  close(): void {
    this.#cancel();
    this.#atMono = Number.NEGATIVE_INFINITY;
  }
}
