import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ClaimStore } from "../run/claim-store.ts";
import type { HeldRun } from "./running/held-run.ts";

/**
 * Runs older than this are reported as started, so that operators see them and the store grants them their task's grace period. A run with
 * a grace period longer than this is reported at the next opportunity.
 */
const reportMs = 1_000;

/** Reports to the store two facts that a claim does not show: that its run has started, and the run's progress. */
export class Reporter {
  readonly #claims: Pick<ClaimStore, "report">;
  readonly #sessionId: () => number;
  readonly #log: Log;

  constructor(options: { claims: Pick<ClaimStore, "report">; sessionId: () => number; log: Log }) {
    this.#claims = options.claims;
    this.#sessionId = options.sessionId;
    this.#log = options.log;
  }

  async reportLong(held: Iterable<HeldRun>, nowMono: number): Promise<void> {
    const long = [...held].filter(
      (run) =>
        (run.state === "running" || run.state === "ending") &&
        // The row of a completing run is locked until its handler commits, and a run that has ended needs no report.
        !run.completing &&
        (run.startedMono <= nowMono - reportMs || run.known.definition.graceMs > reportMs) &&
        (!run.reported || run.progressText !== null),
    );
    try {
      await this.report(long);
    } catch (error) {
      this.#log.debug({ error: messageOf(error) }, "long runs could not be reported yet");
    }
  }

  /** @param runs runs that have started */
  async report(runs: HeldRun[]): Promise<void> {
    if (runs.length === 0) return;
    const reports = runs.map((run) => ({
      runId: run.id,
      fence: run.fence,
      startedMs: run.startedMs as number,
      progress: run.progressText,
    }));
    const session = this.#sessionId();
    await this.#claims.report(session, reports);
    // If the session was lost meanwhile, the store may have ignored the report.
    if (session !== this.#sessionId()) return;
    runs.forEach((run, i) => {
      run.reported = true;
      if (run.progressText === reports[i]?.progress) run.progressText = null;
    });
  }
}
