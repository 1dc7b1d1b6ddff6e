/** The request of a worker that has more due runs than free slots: see `turn`. */
export interface TurnRequest extends ClaimRequest {
  /** The highest priority among this worker's waiting runs: runs of a lower priority are not claimed in this turn. */
  leastPriority: number;
  /** Tasks of which this worker has waiting runs of that priority: of these tasks, only runs of a higher priority are claimed. */
  waitingTaskIds: number[];
  /** The most runs claimed of one task. */
  each: number;
  /** The task at which the last turn ended; 0: begin at the first task. */
  afterTaskId: number;
}

import type { SqlClient } from "../base/change.ts";
import type { Json } from "../base/json.ts";
import type { RunLabels } from "../task/kinds/run-labels.ts";
import type { ComingAnswer, ComingRequest } from "./coming-runs.ts";
import type { Overrides } from "./enqueue-options.ts";
import type { Onward } from "./flow.ts";

export interface ClaimRequest {
  sessionId: number;
  groupIds: number[];
  /** Tasks of those groups that this worker cannot run. */
  exceptTaskIds: number[];
  /** Only runs due at or before this time are claimed. */
  untilMs: number;
  limit: number;
  /** How many of the claimed runs could start at once: no more runs than this are taken from a group with a limit. Absent: `limit`. */
  free?: number;
  nowMs: number;
}

export interface ClaimedRun {
  runId: number;
  taskId: number;
  version: number;
  fence: number;
  attempt: number;
  /** Earlier attempts that outlived their worker's session; they do not count as tries of the task's retry policy. Absent: none. */
  losses?: number | undefined;
  /** Earlier attempts after which the handler snoozed the run; they do not count as tries either. Absent: none. */
  snoozes?: number | undefined;
  dueMs: number;
  /** Since when the run waited only for a worker, if that is later than `dueMs`: see run/handling/lateness.ts. Absent or null: since `dueMs`. */
  readyMs?: number | null | undefined;
  slotMs: number | null;
  priority: number;
  key: string | null;
  payload: Json;
  /** For a part of a split run: its index, from 0, and the number of parts. */
  shard?: [index: number, total: number] | null;
  /** The run's own policies; absent or null: the task's. */
  overrides?: Overrides | null;
  /** The run's first attempt must not begin after this time. Absent or null: the run does not expire. */
  expiresMs?: number | null;
  /** Absent or null: the run has no labels. */
  labels?: RunLabels | null;
  /** The state saved by an earlier attempt of this run, or by the run that this one continues. */
  state?: Json;
  /**
   * True if ending the run takes more work, because the task counts its slots of concurrency or plans its next slot from a run's end, or
   * because other runs depend on it.
   */
  linked: boolean;
}

/** Free slots of a worker in this process. The statement that makes a run also claims it for one of these slots. */
export interface LocalClaims {
  sessionId: number;
  groupIds: number[];
  untilMs: number;
  room: number;
  /** @param readyMs the earliest due time of the runs that were made and not claimed; Infinity: there is none */
  made(claimed: ClaimedRun[], readyMs: number): void;
  /** Called when claims may have been made whose reply was lost: the store has them. */
  lost(): void;
}

export interface ClaimAnswer {
  runs: ClaimedRun[];
  /**
   * Returns when to claim again: the earliest due time of the runs left, or null if no run waits. The claimed runs can start before this
   * query is answered.
   */
  nextDue: () => Promise<number | null>;
  /** The session takes no more runs, so the waiting runs were not looked at. */
  draining?: boolean;
}

/** Free slots of another worker for runs of these tasks. */
export interface RoomElsewhere {
  places: number;
  taskIds: number[];
}

export type Verdict =
  | {
      kind: "ended";
      outcome: "succeeded" | "failed" | "cancelled";
      result: string | null;
      error: string | null;
      /** Only for a success: the run that follows, written together with the verdict. */
      onward?: Onward;
      cutShort?: true;
    }
  /**
   * `ask`: retry only if an operator decides so. `askedMs`: the part of `dueMs` that comes from the handler's `retryAfterMs`, for code that
   * recomputes `dueMs`. `cutShort`: the worker ended the attempt, not its handler, so `onWorkerLost` has decided. `lost`: the attempt
   * outlived its worker's session; the store counts it, and ends the run when its task's `workerLosses` is reached. `inMs`: the handler
   * chose the time of the next try, so no back-off applies. `snoozed`: the attempt has not failed.
   */
  | {
      kind: "retry";
      dueMs: number;
      error: string | null;
      ask?: boolean;
      askedMs?: number;
      cutShort?: true;
      lost?: boolean;
      inMs?: number;
      snoozed?: true;
    }
  | { kind: "released" };

export interface Settlement {
  /** The claim's session, if a server settles for many sessions at once; default: the session that settles. */
  sessionId?: number;
  runId: number;
  fence: number;
  attempt: number;
  taskId: number;
  linked: boolean;
  /** The run's task keeps no history of successes: only a trace of a success is stored, unless another run reads more of it. */
  unkept?: boolean;
  startedMs: number | null;
  endedMs: number;
  verdict: Verdict;
}

export interface ReclaimedRun {
  runId: number;
  taskId: number;
  fence: number;
  attempt: number;
  sessionId: number;
  /** `release`: the run cannot have been started, so it becomes claimable again as if it had not been claimed. */
  outcome: "retry" | "fail" | "ask" | "cancel" | "release";
}

export interface ClaimStore {
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /** Returns, per bin of time, how many claimable runs become due ahead. */
  coming(request: ComingRequest): Promise<ComingAnswer>;
  /**
   * Claims a few due runs of each task whose runs would otherwise wait behind older runs of other tasks. Looks at a bounded number of
   * tasks.
   * @returns the claimed runs, and the task where the next turn goes on; 0: the round is complete
   */
  turn(request: TurnRequest): Promise<{ runs: ClaimedRun[]; lastTaskId: number }>;
  /**
   * Applies each verdict whose fence is still the run's. Repeatable: a verdict that is already stored counts as applied. A claim ends only
   * once: if a call has several verdicts on one claim, the first counts; the others are recorded as late results, and the return value
   * covers only the first.
   * @returns the fences whose verdict was refused, because the claim no longer belongs to the session
   */
  settle(sessionId: number, settlements: Settlement[], nowMs: number): Promise<Set<number>>;
  /** Settles one run inside the caller's transaction. @returns whether the claim was still valid */
  settleIn(client: SqlClient, sessionId: number, settlement: Settlement, nowMs: number): Promise<boolean>;
  /** Returns the claims that the store has for this session, for a worker that lost a reply. */
  heldBy(sessionId: number): Promise<ClaimedRun[]>;
  /** Returns the other workers with free slots for runs of these tasks, for a worker that has none. */
  roomElsewhere(sessionId: number, taskIds: number[]): Promise<RoomElsewhere[]>;
  /**
   * Moves the claims of a lost session to the same process's new session, except claims that were already taken back. @returns the claims
   * that moved
   */
  adopt(oldSessionId: number, newSessionId: number): Promise<ClaimedRun[]>;
  /** Claims of this session that the store recalls. */
  recalls(sessionId: number): Promise<{ runId: number; fence: number; kind: "cancel" | "withdraw"; why: string }[]>;
  /**
   * Reports runs that have started, and their progress; a report of a started run also answers a withdrawal. Of several reports on one
   * claim in a call, the first counts.
   * @returns the fences of claims that the session still has
   */
  report(
    sessionId: number,
    reports: { runId: number; fence: number; startedMs: number; progress: string | null }[],
  ): Promise<Set<number>>;
  /**
   * Takes back claims of an ended session. Claims whose start was never reported are taken back at once, because their worker also stops
   * those runs when its trust ends. Other claims are taken back once the task's grace period has passed since the session was found silent.
   */
  reclaim(sessionId: number, silentForMs: number, nowMs: number, limit: number): Promise<ReclaimedRun[]>;
}
