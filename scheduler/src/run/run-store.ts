import type { SqlClient } from "../base/change.ts";
import type { LocalClaims } from "./claim-store.ts";
import type { EndStore } from "./run-end.ts";
import type { AttemptRecord, Enqueued, EnqueueWrite, LogLine, RunFilter, RunOrigin, RunRecord } from "./run-record.ts";

export interface RunStore extends EndStore {
  /**
   * Makes runs. Repeatable: the runs' numbers are drawn first, so a second try recognises its own runs.
   * @param local takes the runs that are due at once
   * @param drawn if empty, receives the runs' numbers, in the order of `writes`. If it is passed again with all or some of the same writes,
   * runs that already exist are returned: after a failed call it is unknown whether that call made them
   * @param signal once aborted, the call is not repeated while the store is away: the next failure is thrown
   */
  enqueue(
    writes: EnqueueWrite[],
    nowMs: number,
    local?: LocalClaims,
    drawn?: number[],
    signal?: AbortSignal,
  ): Promise<Enqueued[]>;
  /**
   * Enqueues a run that replaces the waiting run of its key, or stands for its key for a time: see `EnqueueWrite`. If a run with the key
   * has had a try, is held by a worker, or stands for the key, no run is made and that run is returned. Repeated until the store answers,
   * like `enqueue`.
   */
  enqueueReplacing(write: EnqueueWrite, nowMs: number, signal?: AbortSignal): Promise<Enqueued>;
  /** Resolves when the other processes have been sent a signal for everything that this process has enqueued and committed by now. */
  announced(): Promise<void>;
  /** Returns the origins of the given runs; runs enqueued without a trace context are left out. */
  origins(runIds: number[]): Promise<RunOrigin[]>;
  /**
   * Stores the spans of runs that follow from these spans. Tries once. Leaves out a span whose claim is no longer valid.
   * @param sessionId the session that must hold the claims
   * @returns the runs whose spans were stored
   */
  leaveSpans(
    spans: { runId: number; fence: number; context: string }[],
    nowMs: number,
    sessionId?: number,
  ): Promise<Set<number>>;
  /** @throws OPTION_INVALID: the client has no open transaction, or belongs to another database */
  requireTransaction(client: SqlClient): Promise<void>;
  /** The same inside the caller's transaction. @param places "later": the caller settles the gates of held runs itself, after the call */
  enqueueIn(client: SqlClient, write: EnqueueWrite, nowMs: number, places?: "later"): Promise<Enqueued>;
  /** @returns "cancelled" at once if no worker has the run; "asked" if its worker must stop it; @throws RUN_UNKNOWN, RUN_STATE */
  /** @param by the caller, if the request comes from one: recorded in the audit */
  cancel(runId: number, why: string, nowMs: number, by?: string): Promise<"cancelled" | "asked">;
  /** Ends the runs that had not begun when they expired, except runs that workers have claimed. @returns how many */
  endExpired(nowMs: number): Promise<number>;
  /** Drops the keys for which no run stands any more. */
  forgetKeys(nowMs: number): Promise<void>;
  /** Returns those of these runs whose worker has not answered a recall yet. */
  recallsOpen(runIds: number[]): Promise<number[]>;
  find(runId: number): Promise<RunRecord>;
  /** Works for a removed task too. @throws TASK_UNKNOWN: no task of that name ever existed */
  list(filter: RunFilter): Promise<RunRecord[]>;
  attempts(runId: number): Promise<AttemptRecord[]>;
  logs(runId: number, limit: number): Promise<LogLine[]>;
  /**
   * Writes log lines. A line that is more than a day old is stored with a time of a day ago, because retention may have dropped the
   * partition of an earlier day.
   * @param sessionId if given, a line is left out unless this session's worker is known to hold the claim with the line's run and fence
   * @returns the lines that were left out
   */
  writeLogs(lines: LogLine[], nowMs: number, sessionId?: number): Promise<LogLine[]>;
}
