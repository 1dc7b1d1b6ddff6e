const readings = 20;
const mostOf = (read: () => number) => Math.max(...Array.from({ length: readings }, read));

/**
 * The monotonic clock that all processes of a machine share, in ms with a fraction: Node's `performance.now` runs on it
 * too, and is the cheaper call, but counts from its process's start. A process that loses the processor between the two
 * calls reads too little (one was 8 ms behind the others, and all that it did told as early): so of several the most.
 */
const sinceStart = mostOf(() => Number(process.hrtime.bigint()) / 1e6 - performance.now());

export function monotonicMs(): number {
  return performance.now() + sinceStart;
}

/**
 * What the wall clock is ahead of it. The wall clock has whole milliseconds and is cut down, so a reading is too small by
 * what has passed since the last one began: taken as one begins, and of several the largest.
 */
export function wallAheadMs(): number {
  return mostOf(() => {
    const before = Date.now();
    let now = before;
    while (now === before) now = Date.now();
    return now - monotonicMs();
  });
}
