import { type Clock, settlesWithin } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { handOverMs } from "./bounds.ts";
import type { Idle } from "./idle.ts";
import type { HeldRun } from "./running/held-run.ts";

/** The parts of a worker that its stop uses. */
export interface StoppingWorker {
  clock: Clock;
  log: Log;
  idle: Idle;
  /** Claims under way. */
  claiming: Promise<unknown>;
  /** Gives back waiting runs, except those due within `sparedMs` that can start by then. */
  giveBack(sparedMs: number): void;
  /** Tells the handler to stop. */
  abort(run: HeldRun): void;
  /** Abandons a handler that was told to stop and has not stopped. */
  giveUp(run: HeldRun): void;
  /** Resolves when every verdict and log line is in the store. */
  flushed(): Promise<unknown>;
  /** Runs that, as far as this worker knows, the store still has as claimed by this worker. */
  held: ReadonlyMap<number, HeldRun>;
}

/**
 * Waits for the claims under way and the running handlers, for at most `graceMs`; then aborts the handlers. The aborted handlers and the
 * last verdicts have `closingMs` more. A handler that has not stopped after half of `closingMs` is abandoned: its run ends like that of a
 * lost worker. Runs whose verdict has not reached the store by the end are treated the same way: the store takes them back with the
 * session.
 */
export async function stopWork(worker: StoppingWorker, graceMs: number, closingMs: number): Promise<void> {
  const { clock, log, idle } = worker;
  const graceOver = clock.monotonic() + graceMs;
  const graceLeft = () => Math.max(0, graceOver - clock.monotonic());
  const left = () => Math.max(0, graceOver + closingMs - clock.monotonic());
  worker.giveBack(Math.min(handOverMs, graceMs / 2));
  // While the store is away, these claims do not end. If they claim runs after all, the store takes those back with the session.
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
