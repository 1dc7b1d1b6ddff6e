import { type Clock, settlesWithin } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { handOverMs } from "./bounds.ts";
import type { Idle } from "./idle.ts";
import type { HeldRun } from "./running/held-run.ts";

/** What a worker does for its stop. */
export interface StoppingWorker {
  clock: Clock;
  log: Log;
  idle: Idle;
  /** Claims under way. */
  claiming: Promise<unknown>;
  /** Gives back what waits, but for what is due within `sparedMs` and can be started by then. */
  giveBack(sparedMs: number): void;
  /** Tells the handler to stop. */
  abort(run: HeldRun): void;
  /** Its handler has been told to stop, and has not. */
  giveUp(run: HeldRun): void;
  /** Resolves when every verdict and line of log is in the store. */
  flushed(): Promise<unknown>;
  /** Runs that the store still has as claimed by this worker, as far as it knows. */
  held: ReadonlyMap<number, HeldRun>;
}

/**
 * Waits for the claims under way and the handlers at work, for `graceMs` at most; then tells these to stop. They and the last verdicts
 * have `closingMs` more. A handler that has not stopped by half of that is left behind: its run ends as that of a lost worker. So do runs
 * whose verdict the store has not got by then: it takes them back with the session.
 */
export async function stopWork(worker: StoppingWorker, graceMs: number, closingMs: number): Promise<void> {
  const { clock, log, idle } = worker;
  const graceOver = clock.monotonic() + graceMs;
  const graceLeft = () => Math.max(0, graceOver - clock.monotonic());
  const left = () => Math.max(0, graceOver + closingMs - clock.monotonic());
  worker.giveBack(Math.min(handOverMs, graceMs / 2));
  // With the store away these do not end. What they claim all the same is taken back with the session.
  await settlesWithin(clock, graceLeft(), worker.claiming);
  worker.giveBack(Math.min(handOverMs, graceLeft() / 2));
  if (!(await idle.within(graceLeft()))) {
    worker.giveBack(0);
    for (const run of worker.held.values()) worker.abort(run);
    if (!(await idle.within(left() / 2)))
      for (const run of [...worker.held.values()]) if (run.state === "ending") worker.giveUp(run);
  }
  if (!(await settlesWithin(clock, left(), worker.flushed())))
    log.warn({ runs: worker.held.size }, "stopped before the store had all verdicts: it takes the claims back");
}
