export const claimsPerStatement = 2_000;
/** A claim that returns at least this many runs has probably left more in the store. */
export const backlogRuns = claimsPerStatement / 2;
/** The most claimed runs that a worker holds. Each takes about 700 bytes. */
export const heldMax = 100_000;
/**
 * Decides when a worker releases runs that wait in it for a slot, so that another worker can start them: each run that has waited for
 * `waitedMs`, except those that this worker can start within `sparedMs` at its measured pace. If no other worker is free, they would only
 * be claimed again here, and of a hundred thousand quick runs that are due at once, releasing and claiming the last ones takes longer than
 * starting them. After 5 s no run is spared, because behind runs that take ten minutes it would wait while other workers are idle.
 */
export const givenBack = [
  { waitedMs: 5_000, sparedMs: 0 },
  { waitedMs: 1_000, sparedMs: 1_000 },
] as const;
/**
 * A stopping worker still starts runs due within this time, in ms, because another worker would need longer to be notified and claim them.
 */
export const handOverMs = 500;
/**
 * The shortest time, in ms, between two claims caused by heartbeats while there are tasks that this worker cannot run. Heartbeats report
 * the runs of those tasks as ready too.
 */
export const vainMs = 30_000;
export const guardMs = 250;
/**
 * The time, in ms, after which a handler that ignores its abort signal is abandoned: its claim ends and its slot becomes free, although its
 * code may continue. It is longer than the 10 s that a command has between SIGTERM and SIGKILL.
 */
export const ignoredAbortMs = 12_000;
