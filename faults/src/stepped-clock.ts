const systemDate = Date;
let aheadMs = 0;

/**
 * Makes the process's wall clock jump, for all code in it; its monotonic clock and its timers go on unchanged. Other processes, the servers
 * among them, are not affected.
 */
export function stepClock(ms: number): void {
  if (Date === systemDate) install();
  aheadMs += ms;
}

function install(): void {
  const now = () => systemDate.now() + aheadMs;
  globalThis.Date = new Proxy(systemDate, {
    construct: (target, given, as) => Reflect.construct(target, given.length === 0 ? [now()] : given, as),
    apply: () => new systemDate(now()).toString(),
    get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
  });
}
