const systemDate = Date;
let aheadMs = 0;

/**
 * Shifts the wall clock (`Date`) by `ms` for all code in this process. The monotonic clock and timers are not changed; other processes and
 * the servers are not affected.
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
