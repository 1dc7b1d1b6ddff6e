/**
 * While simulated code runs, records uses of the system's clock, timers and random numbers. Simulated code must use those of the
 * simulation instead: a single use of the system's would make the same seed run differently each time.
 */
const realImmediate = setImmediate;
const realTimeout = setTimeout;
const found = new Set<string>();

export const tripwire = {
  armed: false,

  /** Calls `call` after all pending microtasks, and after earlier calls of this function. */
  next(call: () => void): void {
    realImmediate(call);
  },

  /** Waits for the real server: resolves with `done`, or after `ms` of real time. */
  within(ms: number, done: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const timer = realTimeout(resolve, ms);
      void done.then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  },

  /** Returns the functions that were used since the last call, each with the line of code that used it. */
  take(): string[] {
    const names = [...found];
    found.clear();
    return names;
  },

  /** Installs the tripwire, once for each process. */
  install(): void {
    guard(Date, "now", "Date.now");
    guard(Math, "random", "Math.random");
    guard(performance, "now", "performance.now");
    for (const name of ["setTimeout", "setInterval", "setImmediate"] as const) guard(globalThis, name, name);
    guard(AbortSignal, "timeout", "AbortSignal.timeout");
    guard(crypto, "randomUUID", "crypto.randomUUID");
    guard(process, "hrtime", "process.hrtime");
  },
};

function guard<Name extends string>(owner: Record<Name, unknown> | object, name: Name, shown: string): void {
  const real = (owner as Record<Name, unknown>)[name] as (...given: unknown[]) => unknown;
  const guarded = function (this: unknown, ...given: unknown[]): unknown {
    if (tripwire.armed) found.add(`${shown} ${new Error().stack?.split("\n")[2]?.trim() ?? ""}`);
    return Reflect.apply(real, this === undefined ? owner : this, given);
  };
  Object.defineProperty(owner, name, {
    value: Object.assign(guarded, real),
    configurable: true,
    writable: true,
  });
}
