import type { RunNotice } from "../handler.ts";
import type { Verdict } from "../store.ts";
import type { HeldRun } from "./held-run.ts";

/** Tells the listeners what becomes of a run here; with none it costs a run nothing. */
export class Notices {
  readonly #listeners: readonly ((notice: RunNotice) => void)[];
  readonly #now: () => number;

  constructor(listeners: readonly ((notice: RunNotice) => void)[] | undefined, now: () => number) {
    this.#listeners = listeners ?? [];
    this.#now = now;
  }

  /** That it started, or what became of the attempt. */
  tell(run: HeldRun, verdict?: Exclude<Verdict, { kind: "released" }>): void {
    if (this.#listeners.length === 0) return;
    const { id: runId, task, attempt, claim, startedMs } = run;
    const { slotMs, dueMs } = claim;
    const told = { runId, task, attempt, slotMs, dueMs, startedMs: startedMs ?? dueMs };
    const notice: RunNotice = verdict
      ? {
          ...told,
          kind: verdict.kind,
          endedMs: this.#now(),
          outcome: verdict.kind === "ended" ? verdict.outcome : "failed",
          error: verdict.error,
        }
      : { ...told, kind: "started", endedMs: null, outcome: null, error: null };
    for (const listener of this.#listeners) listener(notice);
  }
}
