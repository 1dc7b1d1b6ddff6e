import { type Clock, settlesWithin } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { handOverMs } from "./bounds.ts";
import type { Idle } from "./idle.ts";
import type { HeldRun } from "./running/held-run.ts";

/** The parts of a worker that `stopWork` uses. */
export interface StoppingWorker {
  clock: Clock;
  log: Log;
  idle: Idle;
  /** Settles when the claims under way have settled. */
  claiming: Promise<unknown>;
  /** Gives back waiting runs, except those that are due within `sparedMs` and that can start by then. */
  giveBack(sparedMs: number): void;
  /** Aborts the handler's signal. */
  abort(run: HeldRun): void;
  /** Ends the claim of a run whose handler has not stopped after its signal was aborted. */
  giveUp(run: HeldRun): void;
  /** Resolves when no verdict and no log line is being sent or waits to be sent, whether or not the store has accepted them. */
  flushed(): Promise<unknown>;
  /** Runs that the store shows as claimed by this worker, as far as this worker knows. */
  held: ReadonlyMap<number, HeldRun>;
}

/**
 * Waits at most `graceMs` for the claims under way and the running handlers, then aborts the handlers. The aborted handlers and the last
 * verdicts have `closingMs` more. A handler that has not stopped after half of `closingMs` is abandoned, and its run ends as after the loss
 * of its worker. Runs whose verdicts have not reached the store by the end are taken back by the store when the session ends.
 */
export async function stopWork(worker: StoppingWorker, graceMs: number, closingMs: number): Promise<void> {
  const { clock, log, idle } = worker;
  const graceOver = clock.monotonic() + graceMs;
  const graceLeft = () => Math.max(0, graceOver - clock.monotonic());
  const left = () => Math.max(0, graceOver + closingMs - clock.monotonic());
  worker.giveBack(Math.min(handOverMs, graceMs / 2));
  // While the store is away, claims under way do not settle. If they claim runs later, the store takes these runs back with the session.
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
