/**
 * The monotonic clock that all processes of a machine share, in ms with a fraction: Node's `performance.now` runs on it
 * too, and is the cheaper call, but counts from its process's start.
 */
const sinceStart = Number(process.hrtime.bigint()) / 1e6 - performance.now();

export function monotonicMs(): number {
  return performance.now() + sinceStart;
}

/** What the wall clock is ahead of it. The wall clock has whole milliseconds, so it is taken as one begins. */
export function wallAheadMs(): number {
  let least = Number.POSITIVE_INFINITY;
  for (let turn = 0; turn < 5; turn++) {
    const before = Date.now();
    let now = before;
    while (now === before) now = Date.now();
    least = Math.min(least, now - monotonicMs());
  }
  return least;
}
