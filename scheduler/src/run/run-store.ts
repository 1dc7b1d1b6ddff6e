import type { SqlClient } from "../base/change.ts";
import type { LocalClaims } from "./claim-store.ts";
import type { EndStore } from "./run-end.ts";
import type { AttemptRecord, Enqueued, EnqueueWrite, LogLine, RunFilter, RunOrigin, RunRecord } from "./run-record.ts";

export interface RunStore extends EndStore {
  /**
   * Repeatable: numbers are drawn first, and a second try recognises its own.
   * @param local takes what is due at once
   * @param drawn empty: gets the runs' numbers, in the order of `writes`. Given again with the same writes, or some of each, what
   * is there of them already stands: whether the call that failed made it cannot be told from its error
   * @param signal aborted, it is not repeated while the store is away: the next failure is thrown
   */
  enqueue(
    writes: EnqueueWrite[],
    nowMs: number,
    local?: LocalClaims,
    drawn?: number[],
    signal?: AbortSignal,
  ): Promise<Enqueued[]>;
  /** Resolves when the other processes have been sent a signal of all that this one has enqueued and committed by now. */
  announced(): Promise<void>;
  /** The origins of those of these runs that were enqueued with a trace context. */
  origins(runIds: number[]): Promise<RunOrigin[]>;
  /**
   * Spans of runs, for those that these begin. One try. A span whose claim does not stand is left out.
   * @param sessionId whose claims they must be
   * @returns the runs whose span was taken
   */
  leaveSpans(
    spans: { runId: number; fence: number; context: string }[],
    nowMs: number,
    sessionId?: number,
  ): Promise<Set<number>>;
  /** @throws OPTION_INVALID: no transaction was begun on this client, or it is of another database */
  requireTransaction(client: SqlClient): Promise<void>;
  /** The same inside the caller's transaction. @param places of runs that wait for one: "later" is when the caller settles gates */
  enqueueIn(client: SqlClient, write: EnqueueWrite, nowMs: number, places?: "later"): Promise<Enqueued>;
  /** @returns "cancelled" at once for what no worker has; "asked" when its worker must stop it; @throws RUN_UNKNOWN, RUN_STATE */
  /** @param by whose wish it is, where it is a wish: put down in the audit */
  cancel(runId: number, why: string, nowMs: number, by?: string): Promise<"cancelled" | "asked">;
  /** The runs among these whose worker has not answered a recall yet. */
  recallsOpen(runIds: number[]): Promise<number[]>;
  find(runId: number): Promise<RunRecord>;
  /** Also of a task that was removed. @throws TASK_UNKNOWN: there never was one of that name */
  list(filter: RunFilter): Promise<RunRecord[]>;
  attempts(runId: number): Promise<AttemptRecord[]>;
  logs(runId: number, limit: number): Promise<LogLine[]>;
  /**
   * One of more than a day ago is told as of a day ago: of days before, retention may have dropped the place.
   * @param sessionId given: a line whose run and fence are not known as a claim of this session's worker is left out
   * @returns those of `lines` that were left out
   */
  writeLogs(lines: LogLine[], nowMs: number, sessionId?: number): Promise<LogLine[]>;
}
