import type { SqlClient } from "../base/change.ts";
import type { LocalClaims } from "./claim-store.ts";
import type { EndStore } from "./run-end.ts";
import type { AttemptRecord, Enqueued, EnqueueWrite, LogLine, RunFilter, RunOrigin, RunRecord } from "./run-record.ts";

export interface RunStore extends EndStore {
  /**
   * Creates runs. Can be repeated: the runs' ids are reserved first, so a second attempt recognises the runs of the first.
   * @param local claims those of the runs that are due at once for a worker in this process
   * @param drawn if empty, it receives the runs' ids in the order of `writes`. After a failed call it is unknown whether the runs
   * were created; if `drawn` is then passed again with all or some of the same writes, existing runs are returned
   * @param signal once aborted, the call is not repeated while the store is unreachable; the next error is thrown
   */
  enqueue(
    writes: EnqueueWrite[],
    nowMs: number,
    local?: LocalClaims,
    drawn?: number[],
    signal?: AbortSignal,
  ): Promise<Enqueued[]>;
  /**
   * Enqueues a run that replaces the waiting run with its key, or that keeps its key for a period (`uniqueFor`): see
   * `EnqueueWrite`. If the run with the key has had an attempt, is claimed by a worker, or still has the key by `uniqueFor`, that
   * run is returned and no run is created; with `again`, one is created when that run ends. The call is repeated until the store
   * responds, like `enqueue`.
   */
  enqueueReplacing(write: EnqueueWrite, nowMs: number, signal?: AbortSignal): Promise<Enqueued>;
  /**
   * Resolves once the signals for the runs that this process has enqueued and committed so far have been sent or have failed. Runs that
   * are due in more than a minute get no signal.
   */
  announced(): Promise<void>;
  /** Returns the origins of these runs. Runs that were enqueued without a trace context are left out. */
  origins(runIds: number[]): Promise<RunOrigin[]>;
  /**
   * Stores trace spans of runs, so that runs that they create later can be linked to them. Sends only one statement, without repetition,
   * and leaves out spans whose claim is not valid any more.
   * @param sessionId the session to which the claims must belong
   * @returns the ids of the runs whose spans were stored
   */
  leaveSpans(
    spans: { runId: number; fence: number; context: string }[],
    nowMs: number,
    sessionId?: number,
  ): Promise<Set<number>>;
  /** @throws OPTION_INVALID if the client has no open transaction, or is connected to another database */
  requireTransaction(client: SqlClient): Promise<void>;
  /**
   * Enqueues a run inside the caller's transaction.
   * @param places "later": the caller itself assigns free slots of concurrency to held runs, after the call
   */
  enqueueIn(client: SqlClient, write: EnqueueWrite, nowMs: number, places?: "later"): Promise<Enqueued>;
  /**
   * @param by the user or program that requested the cancellation; it is recorded in the audit log
   * @returns "cancelled" if no worker has the run, so that it has ended; "asked" if its worker must stop it
   * @throws RUN_UNKNOWN, RUN_STATE
   */
  cancel(runId: number, why: string, nowMs: number, by?: string): Promise<"cancelled" | "asked">;
  /** Ends the runs that have not started before their expiry, except runs that are claimed. @returns the number of ended runs */
  endExpired(nowMs: number): Promise<number>;
  /** Deletes the records of keys whose `uniqueFor` has passed. */
  forgetKeys(nowMs: number): Promise<void>;
  /**
   * Returns those of the given runs whose claim is recalled and whose worker has neither released the claim nor reported a start.
   */
  recallsOpen(runIds: number[]): Promise<number[]>;
  find(runId: number): Promise<RunRecord>;
  /**
   * Returns runs, also of removed tasks; with a task in the filter, only runs of that task. @throws TASK_UNKNOWN if no task with that name
   * ever existed
   */
  list(filter: RunFilter): Promise<RunRecord[]>;
  attempts(runId: number): Promise<AttemptRecord[]>;
  logs(runId: number, limit: number): Promise<LogLine[]>;
  /**
   * Writes log lines. The time of a line older than a day is stored as one day ago, because retention may have dropped the partition of the
   * earlier day.
   * @param sessionId if given, a line is left out unless its run and fence belong or belonged to a claim of this session, or of an earlier
   * session of the same worker
   * @returns the lines that were left out
   */
  writeLogs(lines: LogLine[], nowMs: number, sessionId?: number): Promise<LogLine[]>;
}
