export const claimsPerStatement = 2_000;
/** A claim that brings so many has most likely left more. */
export const backlogRuns = claimsPerStatement / 2;
/** What one process can start within half a second of one instant; a claim that waits has some 700 bytes. */
export const heldMax = 100_000;
/**
 * What waited for a place here for so long is given back, for a worker that can start it. What can start soon is spared, so many
 * for each place: with nobody else to give it to, it would come straight back. But for no longer than it takes to see that it
 * does not start soon: behind runs of ten minutes it would wait for these, with other workers idle.
 */
export const givenBack = [
  { waitedMs: 5_000, spared: 0 },
  { waitedMs: 1_000, spared: 1 },
] as const;
/** A stopping worker starts what is due so soon: another would first have to be told of it, and to claim it. */
export const handOverMs = 500;
/** With tasks here that this worker cannot run, pulses tell of theirs too: then it follows one no oftener than this. */
export const vainMs = 30_000;
export const guardMs = 250;
/**
 * A handler that ignores its signal is given up on after this: its claim ends and its place is free, though its code may go on. Longer
 * than the 10 s that a command has between SIGTERM and SIGKILL.
 */
export const ignoredAbortMs = 12_000;
