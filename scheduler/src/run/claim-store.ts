/** The request of a worker that has more runs than it can hold: see `turn`. */
export interface TurnRequest extends ClaimRequest {
  /** The highest priority of this worker's waiting runs, so no run of a lower priority has a turn. */
  leastPriority: number;
  /** Tasks with waiting runs of that priority here: of these tasks, only runs of a higher priority have a turn. */
  waitingTaskIds: number[];
  /** The most runs of one task. */
  each: number;
  /** The task at which the last turn ended; 0: begin. */
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
  /** Runs due at or before this. */
  untilMs: number;
  limit: number;
  /** How many of them could start at once: no more runs than this are taken of a group with a limit. Absent: `limit`. */
  free?: number;
  nowMs: number;
}

export interface ClaimedRun {
  runId: number;
  taskId: number;
  version: number;
  fence: number;
  attempt: number;
  /** Earlier attempts that outlived their worker's session: they use up no try of the task's policy. Absent: none. */
  losses?: number | undefined;
  /** Earlier attempts after which its handler put the run off: they use up no try either. Absent: none. */
  snoozes?: number | undefined;
  dueMs: number;
  slotMs: number | null;
  priority: number;
  key: string | null;
  payload: Json;
  /** The part of a split run, from 0, and the number of parts. */
  shard?: [index: number, total: number] | null;
  /** Its own policies; absent or null: the task's. */
  overrides?: Overrides | null;
  /** A first attempt does not begin after this. Absent or null: the run does not expire. */
  expiresMs?: number | null;
  /** Absent or null: it has none. */
  labels?: RunLabels | null;
  /** The state saved by an attempt before this one, or by the run that this one goes on from. */
  state?: Json;
  /** The task counts its slots of concurrency or plans from a run's end, or other runs depend on it, so ending it takes more work. */
  linked: boolean;
}

/** Free slots of a worker in this process for runs that are made here: claimed by the statement that makes them. */
export interface LocalClaims {
  sessionId: number;
  groupIds: number[];
  untilMs: number;
  room: number;
  /** @param readyMs the earliest due time of the runs that were made and not claimed; Infinity: there is none */
  made(claimed: ClaimedRun[], readyMs: number): void;
  /** Claims may have been made without a reply: the store has them. */
  lost(): void;
}

export interface ClaimAnswer {
  runs: ClaimedRun[];
  /** Queries when to claim again: the earliest due time left, null if no run waits. The claimed runs need not wait for it. */
  nextDue: () => Promise<number | null>;
  /** The session takes no more runs, so the waiting runs were not looked at. */
  draining?: boolean;
}

/** Free slots of another worker, for runs of these tasks. */
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
      /** Only for a success: written with it. */
      onward?: Onward;
      cutShort?: true;
    }
  /**
   * `ask`: retry only when an operator decides so. `askedMs`: the part of `dueMs` that comes from the handler's `retryAfterMs`, for code
   * that recomputes it. `cutShort`: ended by this worker and not by its handler, so that `onWorkerLost` has decided. `lost`: the attempt
   * outlived its worker's session; the store counts it, and ends the run when its task's `workerLosses` is reached. `inMs`: the handler
   * named the time of the next try, so no back-off applies. `snoozed`: the attempt has not failed.
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
  /** The claim's session, when a server settles for many sessions at once; default: the session that settles. */
  sessionId?: number;
  runId: number;
  fence: number;
  attempt: number;
  taskId: number;
  linked: boolean;
  /** Its task keeps no history of successes: only a trace of a success is left, unless another run reads more. */
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
  /** `release`: the run cannot have been started, so it goes back as if it had not been claimed. */
  outcome: "retry" | "fail" | "ask" | "cancel" | "release";
}

export interface ClaimStore {
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /** Returns counts of the runs that could be claimed in the time ahead. */
  coming(request: ComingRequest): Promise<ComingAnswer>;
  /**
   * Claims a few due runs of each task whose runs would wait behind the older runs of others. Looks at a bounded number of tasks.
   * @returns the task where the next turn goes on; 0: the round is complete
   */
  turn(request: TurnRequest): Promise<{ runs: ClaimedRun[]; lastTaskId: number }>;
  /**
   * Applies verdicts whose fence is the run's. Repeatable: a verdict found applied already counts as applied. A claim ends once: if a call
   * has several verdicts on one claim, the first counts. The others are recorded as late results, and the return value covers the first
   * alone.
   * @returns the fences whose verdict was refused, because the claim no longer belongs to the session
   */
  settle(sessionId: number, settlements: Settlement[], nowMs: number): Promise<Set<number>>;
  /** Settles one run inside the caller's transaction. @returns whether the claim was still valid */
  settleIn(client: SqlClient, sessionId: number, settlement: Settlement, nowMs: number): Promise<boolean>;
  /** The claims that the store has for this session, for a worker that lost a reply. */
  heldBy(sessionId: number): Promise<ClaimedRun[]>;
  /** Returns the other workers with free slots for runs of these tasks, for a worker that has none. */
  roomElsewhere(sessionId: number, taskIds: number[]): Promise<RoomElsewhere[]>;
  /** Moves claims not yet taken back from a lost session of the same process to its new one. @returns the claims that moved */
  adopt(oldSessionId: number, newSessionId: number): Promise<ClaimedRun[]>;
  /** Claims of this session that the store recalls. */
  recalls(sessionId: number): Promise<{ runId: number; fence: number; kind: "cancel" | "withdraw"; why: string }[]>;
  /**
   * The worker's answer to a withdrawal of what had started already; also reports starts and progress of long runs. Of several
   * reports on one claim in a call the first counts. @returns the fences of claims that the session still has
   */
  report(
    sessionId: number,
    reports: { runId: number; fence: number; startedMs: number; progress: string | null }[],
  ): Promise<Set<number>>;
  /**
   * Takes back claims of an ended session. Claims that it never reported as started are taken back at once, since their worker stops those
   * runs too when its trust ends. Other claims are taken back once the task's grace period has passed since the session was found silent.
   */
  reclaim(sessionId: number, silentForMs: number, nowMs: number, limit: number): Promise<ReclaimedRun[]>;
}
