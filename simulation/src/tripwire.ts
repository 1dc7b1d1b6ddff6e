/**
 * While simulated code runs, whatever reads the system's clock, sets its timers or rolls its dice is found out: the time
 * of a simulation is its own, and one that slipped through would make a seed tell another story each time.
 */
const realImmediate = setImmediate;
const realTimeout = setTimeout;
const found = new Set<string>();

export const tripwire = {
  armed: false,

  /** Resolves when every microtask has run. */
  microtasks(): Promise<void> {
    return new Promise((resolve) => realImmediate(resolve));
  },

  /** A real moment, for who waits for the real server. */
  moment(ms: number): Promise<void> {
    return new Promise((resolve) => realTimeout(resolve, ms));
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
