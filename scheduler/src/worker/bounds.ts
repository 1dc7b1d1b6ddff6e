export const claimsPerStatement = 2_000;
/** A claim that returns this many runs has most likely left more in the store. */
export const backlogRuns = claimsPerStatement / 2;
/** The most runs that one process can start within half a second; a waiting claim takes about 700 bytes. */
export const heldMax = 100_000;
/**
 * Runs that have waited in this worker for a slot for `waitedMs` are given back, for a worker that can start them. `spared` runs per slot
 * are kept, because they can start soon, and without another free worker they would come straight back. They are kept only until it is
 * clear that they do not start soon: behind runs that take ten minutes they would wait while other workers are idle.
 */
export const givenBack = [
  { waitedMs: 5_000, spared: 0 },
  { waitedMs: 1_000, spared: 1 },
] as const;
/** A stopping worker still starts runs due within this time: another worker would first have to be notified and to claim them. */
export const handOverMs = 500;
/**
 * The shortest time between two claims prompted by heartbeats while tasks exist that this worker cannot run, because heartbeats report the
 * runs of those tasks as ready too.
 */
export const vainMs = 30_000;
export const guardMs = 250;
/**
 * After this time a handler that ignores its abort signal is abandoned: its claim ends and its slot is free, though its code may go on.
 * This is longer than the 10 s that a command has between SIGTERM and SIGKILL.
 */
export const ignoredAbortMs = 12_000;
