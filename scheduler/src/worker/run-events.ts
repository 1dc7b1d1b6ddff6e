import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Verdict } from "../run/claim-store.ts";
import type { RunNotice } from "../run/handler.ts";
import { latenessMs, type OnStart, readyMsOf } from "../run/handling/lateness.ts";
import type { HeldRun } from "./running/held-run.ts";

type Told = Exclude<Verdict, { kind: "released" }>;

const isSnoozed = (verdict: Told) => verdict.kind === "retry" && verdict.snoozed === true;

/** Notifies the listeners when runs start or end in this worker. Without listeners, runs have no overhead. */
export class RunEvents {
  readonly #listeners: readonly ((notice: RunNotice) => void)[];
  readonly #onStart: OnStart | undefined;
  readonly #now: () => number;
  readonly #log: Log;

  /** @param onStart called for each first attempt with how late the attempt started, in ms */
  constructor(
    listeners: readonly ((notice: RunNotice) => void)[] | undefined,
    now: () => number,
    log: Log,
    onStart?: OnStart,
  ) {
    this.#listeners = listeners ?? [];
    this.#onStart = onStart;
    this.#now = now;
    this.#log = log;
  }

  /** Notifies the listeners that the run has started, or, if `verdict` is given, how the attempt has ended. */
  tell(run: HeldRun, verdict?: Told): void {
    if (verdict === undefined && this.#onStart && run.attempt === 1)
      this.#onStart(run.task, run.id, latenessMs(run.claim, run.startedMs as number));
    // `#tellAll` is a separate method, because entering it allocates the objects for its closures: one megabyte for ten thousand
    // runs.
    if (this.#listeners.length > 0) this.#tellAll(run, verdict);
  }

  #tellAll(run: HeldRun, verdict: Told | undefined): void {
    const { id: runId, task, attempt, claim, startedMs } = run;
    const { slotMs, dueMs } = claim;
    const told = { runId, task, attempt, slotMs, dueMs, readyMs: readyMsOf(claim), startedMs: startedMs ?? dueMs };
    const notice: RunNotice = verdict
      ? {
          ...told,
          kind: isSnoozed(verdict) ? "snoozed" : verdict.kind,
          endedMs: this.#now(),
          outcome: verdict.kind === "ended" ? verdict.outcome : isSnoozed(verdict) ? null : "failed",
          error: verdict.error,
        }
      : { ...told, kind: "started", endedMs: null, outcome: null, error: null };
    const failed = (error: unknown) =>
      this.#log.error({ run: runId, task, error: messageOf(error) }, "a listener of onRun threw");
    for (const listener of this.#listeners) {
      try {
        const told: unknown = listener(notice);
        if (told instanceof Promise) told.catch(failed);
      } catch (error) {
        failed(error);
      }
    }
  }
}
