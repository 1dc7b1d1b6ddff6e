/**
 * Time arrives as an argument. Only this file and the process's outermost code read a clock or set a timer, so the same engine runs on
 * virtual time. Monotonic time measures waiting and trust; wall time always comes from the store.
 */
export interface Clock {
  /** Milliseconds, with fractions, from an arbitrary zero; the value never steps. */
  monotonic(): number;
  /** This machine's wall clock, epoch milliseconds; may step, so it decides nothing. */
  wall(): number;
  /** Calls `fire` once, `ms` from now at the earliest. The returned function cancels it. */
  after(ms: number, fire: () => void): () => void;
  /**
   * True for a virtual clock, which moves in leaps and fires no timer during a leap: on such a clock a late timer does not indicate
   * event-loop lag.
   */
  readonly leaps?: true;
}

/** Node's timers overflow above this number of milliseconds. */
const longestTimeoutMs = 2 ** 31 - 1;

/**
 * Waits up to this long, in milliseconds, poll in turns of the event loop, which take some microseconds each; a timer would take a whole
 * millisecond.
 */
const turnedMs = 0.35;

/** The timers and the clock of the runtime that a `Clock` is built on. */
interface Timing extends Pick<typeof globalThis, "setTimeout" | "clearTimeout" | "setImmediate" | "clearImmediate"> {
  performance: Pick<typeof globalThis.performance, "now">;
}

export const systemClock: Clock = clockOn(globalThis);

/**
 * `systemClock` with the timers that existed when this module was loaded: a test's fake timers do not stop it. Only for carillon/testing.
 */
export const unfakedClock: Clock = clockOn({
  setTimeout,
  clearTimeout,
  setImmediate,
  clearImmediate,
  performance: { now: performance.now.bind(performance) },
});

/** A clock with the same zero in all threads of this machine, which `systemClock` does not have. */
export const machineClock: Clock = clockOn({
  ...globalThis,
  performance: { now: () => Number(process.hrtime.bigint()) / 1e6 },
});

function clockOn(timing: Timing): Clock {
  return {
    monotonic: () => timing.performance.now(),
    wall: () => Date.now(),
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

/** Polls in turns of the event loop, so that other work can proceed meanwhile. */
function afterTurns(timing: Timing, atMono: number, fire: () => void): () => void {
  const turn = () => {
    if (timing.performance.now() >= atMono) fire();
    else handle = timing.setImmediate(turn);
  };
  let handle = timing.setImmediate(turn);
  return () => timing.clearImmediate(handle);
}

/** Resolves after `ms`, or at once when `signal` aborts; the caller checks the signal. */
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

/** @returns true if `work` resolves or rejects within `ms` */
export async function settlesWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  const settled = new AbortController();
  const end = () => settled.abort();
  work.then(end, end);
  await pause(clock, ms, settled.signal);
  return settled.signal.aborted;
}

/** The sleep of a loop, which `wake` ends. A wake while the loop is working makes its next sleep return at once. */
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

  /** Only one caller may sleep at the same time. */
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
 * One timer for many wake-up requests: it fires at the earliest requested time and drops the later requests. The owner requests those again
 * after it fires.
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

  /** Closes the timer for good. */
  close(): void {
    this.#cancel();
    this.#atMono = Number.NEGATIVE_INFINITY;
  }
}
