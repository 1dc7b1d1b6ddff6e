import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ClaimStore } from "../run/claim-store.ts";
import type { HeldRun } from "./running/held-run.ts";

/**
 * Runs older than this are reported as started: operators see them, and the store grants them their task's grace. A grace
 * that is longer than this is worth a report as soon as the next is made.
 */
const reportMs = 1_000;

/** Tells the store what it cannot know of a claim by itself: that its run has started, and how far it is. */
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
        // Its row is locked until its handler commits, and there is nothing to report of a run that has ended.
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

  /** @param runs that have started */
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
    // Under a session that was lost meanwhile the store may have taken no notice.
    if (session !== this.#sessionId()) return;
    runs.forEach((run, i) => {
      run.reported = true;
      if (run.progressText === reports[i]?.progress) run.progressText = null;
    });
  }
}
