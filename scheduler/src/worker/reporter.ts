import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ClaimStore } from "../run/claim-store.ts";
import type { HeldRun } from "./running/held-run.ts";

/**
 * Age in ms from which a running run is reported as started. The report shows the run to operators, and the store grants a grace period
 * only to reported runs. A run whose grace period is longer than this is reported at the next opportunity.
 */
const reportMs = 1_000;

/** Reports to the store that a run has started, and the run's progress. The claim in the store shows neither. */
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
        // While a completing run's transaction is open, its row is locked and a report would wait. A run that has ended needs no report.
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

  /** @param runs runs that have started; for each, its start and progress are written */
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
    // If the session was lost during the write, the store may have ignored the report.
    if (session !== this.#sessionId()) return;
    runs.forEach((run, i) => {
      run.reported = true;
      if (run.progressText === reports[i]?.progress) run.progressText = null;
    });
  }
}
