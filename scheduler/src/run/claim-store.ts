/** A claim request of a worker whose free slots are fewer than its due runs: see `turn`. */
export interface TurnRequest extends ClaimRequest {
  /** The highest priority among the runs that wait in this worker. Runs with a lower priority are not claimed in this turn. */
  leastPriority: number;
  /** The tasks of the waiting runs with priority `leastPriority`. Only runs of these tasks with a higher priority are claimed. */
  waitingTaskIds: number[];
  /** The maximum number of runs claimed per task and priority. */
  each: number;
  /** The task at which the previous turn ended; 0 begins at the first task. */
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
  /** Tasks of the groups in `groupIds` that this worker cannot run. */
  exceptTaskIds: number[];
  /** Only runs that are due at or before this time (epoch ms) are claimed. */
  untilMs: number;
  limit: number;
  /**
   * The number of claimed runs that the worker could start at once. It is also the maximum number of runs claimed from a group with
   * a limit. Default: `limit`.
   */
  free?: number;
  nowMs: number;
}

export interface ClaimedRun {
  runId: number;
  taskId: number;
  version: number;
  fence: number;
  attempt: number;
  /** The number of earlier attempts whose worker's session was lost. The retry policy does not count them. Absent: none. */
  losses?: number | undefined;
  /**
   * The number of earlier attempts in which the handler postponed the run (snooze). The retry policy does not count them. Absent: none; but
   * in a remote worker, `losses` includes them.
   */
  snoozes?: number | undefined;
  dueMs: number;
  /**
   * The time since when the run waits only for a worker, if later than `dueMs`: see run/handling/lateness.ts. Absent or null: since
   * `dueMs`.
   */
  readyMs?: number | null | undefined;
  slotMs: number | null;
  priority: number;
  key: string | null;
  payload: Json;
  /** For one of the parts of a split run: the part's index, from 0, and the number of parts. */
  shard?: [index: number, total: number] | null;
  /** Policies that replace the task's policies for this run; absent or null: none. */
  overrides?: Overrides | null;
  /** When the run was claimed, in ms; only in lists of existing claims (`heldBy`, `adopt`). */
  claimedMs?: number;
  /** The first attempt must not start after this time. Absent or null: the run does not expire. */
  expiresMs?: number | null;
  /** The run's labels; absent or null: none. */
  labels?: RunLabels | null;
  /** The state that an earlier attempt of this run saved, or the state passed on by the run that this run continues. */
  state?: Json;
  /**
   * True if the end of the run needs additional statements: the task counts its concurrent runs, or plans its next slot from a
   * run's end, or its group has a limit, or other runs depend on this run.
   */
  linked: boolean;
}

/** The free slots of a worker in this process. The statement that creates a run can at once claim it for one of these slots. */
export interface LocalClaims {
  sessionId: number;
  groupIds: number[];
  untilMs: number;
  room: number;
  /**
   * Called after runs were created.
   * @param readyMs the earliest due time of the created runs that were not claimed; Infinity if there are none
   */
  made(claimed: ClaimedRun[], readyMs: number): void;
  /** Called if the response to a statement was lost, so that the store may have claims that this worker does not know yet. */
  lost(): void;
}

export interface ClaimAnswer {
  runs: ClaimedRun[];
  /**
   * Returns when to claim again: the earliest due time of the remaining runs; null if no run waits. It is a function of its own, so
   * that the claimed runs can start before its query completes.
   */
  nextDue: () => Promise<number | null>;
  /** True if the session is being drained. The store then gives it no runs and did not look for any. */
  draining?: boolean;
}

/** The number of free slots of another worker, and the tasks whose runs can use them. */
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
      /** Only for a success: the run that follows. */
      onward?: Onward;
      cutShort?: true;
    }
  /**
   * The attempt has ended and another may follow.
   * `ask`: an operator must decide whether the run is retried.
   * `askedMs`: the part of `dueMs` that comes from the handler's `retryAfterMs`, for code that recomputes `dueMs`.
   * `cutShort`: the worker ended the attempt, not its handler, so `onWorkerLost` has been applied.
   * `lost`: the worker's session was lost during the attempt; the store counts such attempts, and ends the run at the task's
   * `workerLosses`.
   * `inMs`: the handler chose the time of the next attempt, so no back-off applies.
   * `snoozed`: the attempt did not fail; the handler postponed the run.
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
  /** The session that has the claim, for a server that settles claims of many sessions at once. Default: the session passed to `settle`. */
  sessionId?: number;
  runId: number;
  fence: number;
  attempt: number;
  taskId: number;
  linked: boolean;
  /**
   * True if the run's task stores no history of successes. A success then leaves only a small record (a trace), unless another run needs
   * its result.
   */
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
  /** `release`: the run cannot have started, so it becomes claimable again as if it had not been claimed. */
  outcome: "retry" | "fail" | "ask" | "cancel" | "release";
}

export interface ClaimStore {
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /** Returns the number of claimable runs that become due in each of the next time bins. */
  coming(request: ComingRequest): Promise<ComingAnswer>;
  /**
   * Claims a few due runs of each task whose runs would otherwise wait behind older runs of other tasks. One call examines a limited number
   * of tasks.
   * @returns the claimed runs, and the task after which the next turn continues; 0 if all tasks have been examined
   */
  turn(request: TurnRequest): Promise<{ runs: ClaimedRun[]; lastTaskId: number }>;
  /**
   * Stores each verdict whose fence is still the run's current fence. Calls can be repeated: a verdict that is already stored
   * counts as applied. If a call has several verdicts on one claim, only the first counts, because a claim ends only once; the
   * other verdicts are recorded as late results.
   * @returns the fences whose first verdict was refused because the claim no longer belongs to the session
   */
  settle(sessionId: number, settlements: Settlement[], nowMs: number): Promise<Set<number>>;
  /** Settles one run inside the caller's transaction. @returns true if the claim was still valid */
  settleIn(client: SqlClient, sessionId: number, settlement: Settlement, nowMs: number): Promise<boolean>;
  /** Returns the session's claims as stored, for a worker that lost the response to a claim. */
  heldBy(sessionId: number): Promise<ClaimedRun[]>;
  /**
   * For a worker without a free slot: returns the free slots of other workers, and which of these tasks each can run. Looks at a
   * limited random choice of workers, and only at unrouted tasks in the session's own groups.
   */
  roomElsewhere(sessionId: number, taskIds: number[]): Promise<RoomElsewhere[]>;
  /**
   * Moves the claims of a lost session to the new session of the same process, except claims that have already been reclaimed.
   * @returns the claims that were moved
   */
  adopt(oldSessionId: number, newSessionId: number): Promise<ClaimedRun[]>;
  /**
   * Returns the session's claims that are recalled. `cancel`: the run shall stop. `withdraw`: the claim shall be released unless its run
   * has started.
   */
  recalls(sessionId: number): Promise<{ runId: number; fence: number; kind: "cancel" | "withdraw"; why: string }[]>;
  /**
   * Stores that runs have started, and their progress. A report also answers a withdrawal of the claim, so that the claim is not released.
   * If a call has several reports on one claim, the first counts.
   * @returns the fences of the claims that still belong to the session
   */
  report(
    sessionId: number,
    reports: { runId: number; fence: number; startedMs: number; progress: string | null }[],
  ): Promise<Set<number>>;
  /**
   * Reclaims the claims of an ended session. Claims whose start was never reported are reclaimed at once, because their worker stops such
   * runs itself when its session expires. Other claims are reclaimed once the task's grace period has passed since the session was found
   * silent.
   */
  reclaim(sessionId: number, silentForMs: number, nowMs: number, limit: number): Promise<ReclaimedRun[]>;
}
