/**
 * The monotonic clock that all processes of a machine share, in ms with a fraction: Node's `performance.now` runs on it
 * too, and is the cheaper call, but counts from its process's start.
 */
const sinceStart = Number(process.hrtime.bigint()) / 1e6 - performance.now();

export function monotonicMs(): number {
  return performance.now() + sinceStart;
}

/**
 * What the wall clock is ahead of it. The wall clock has whole milliseconds and is cut down, so a reading is too small by
 * what has passed since the last one began: taken as one begins, and of several the largest.
 */
export function wallAheadMs(): number {
  let most = Number.NEGATIVE_INFINITY;
  for (let turn = 0; turn < 20; turn++) {
    const before = Date.now();
    let now = before;
    while (now === before) now = Date.now();
    most = Math.max(most, now - monotonicMs());
  }
  return most;
}
