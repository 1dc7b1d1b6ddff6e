const readings = 20;
const mostOf = (read: () => number) => Math.max(...Array.from({ length: readings }, read));

/**
 * The monotonic clock that all processes of a machine share, in ms with a fraction. Node's `performance.now` runs on it too, and is
 * cheaper to call, but counts from its process's start. If a process loses the processor between the two calls, the difference is
 * too small (once by 8 ms, so that all times of that process were too early). So the highest of several readings is used.
 */
const sinceStart = mostOf(() => Number(process.hrtime.bigint()) / 1e6 - performance.now());

export function monotonicMs(): number {
  return performance.now() + sinceStart;
}

/**
 * The difference between the wall clock and the monotonic clock. The wall clock has whole milliseconds and is rounded down, so a
 * reading is too small by the time since its last millisecond began. So a reading is taken as a millisecond begins, and the largest
 * of several is used.
 */
export function wallAheadMs(): number {
  return mostOf(() => {
    const before = Date.now();
    let now = before;
    while (now === before) now = Date.now();
    return now - monotonicMs();
  });
}
