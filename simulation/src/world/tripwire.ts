/**
 * While simulated code runs, whatever reads the system's clock, sets its timers or rolls its dice is found out: the time
 * of a simulation is its own, and one that slipped through would make a seed tell another story each time.
 */
const realImmediate = setImmediate;
const realTimeout = setTimeout;
const found = new Set<string>();

export const tripwire = {
  armed: false,

  /** Calls it when every microtask has run, and other calls of this that were asked for before. */
  next(call: () => void): void {
    realImmediate(call);
  },

  /** For who waits for the real server: resolves with `done`, and after a real moment all the same. */
  within(ms: number, done: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const timer = realTimeout(resolve, ms);
      void done.then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  },

  /** What was touched since the last call. */
  take(): string[] {
    const names = [...found];
    found.clear();
    return names;
  },

  /** Once for a process. */
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
