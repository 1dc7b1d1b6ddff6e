const readings = 20;
const mostOf = (read: () => number) => Math.max(...Array.from({ length: readings }, read));

/**
 * The difference between the machine-wide monotonic clock (`process.hrtime`) and `performance.now`, in ms. `performance.now` runs on the
 * same clock and is cheaper, but counts from the start of its process. If the process is descheduled between the two calls, the difference
 * is too small, so the highest of several readings is used.
 */
const sinceStart = mostOf(() => Number(process.hrtime.bigint()) / 1e6 - performance.now());

export function monotonicMs(): number {
  return performance.now() + sinceStart;
}

/**
 * Returns the wall clock minus the monotonic clock, in ms. The wall clock is rounded down to whole ms, so a reading can be up to 1 ms too
 * small. Therefore each reading is taken when a new millisecond begins, and the largest of several is used.
 */
export function wallAheadMs(): number {
  return mostOf(() => {
    const before = Date.now();
    let now = before;
    while (now === before) now = Date.now();
    return now - monotonicMs();
  });
}
