/** What a worker asks for that has more than it can hold: see `turn`. */
export interface TurnRequest extends ClaimRequest {
  /** The highest that this worker has waiting, so nothing lower has a turn. */
  leastPriority: number;
  /** Tasks of which it has runs of that priority waiting: of these only what is of a higher one has a turn. */
  waitingTaskIds: number[];
  /** At most so many runs of one task. */
  each: number;
  /** Where the last turn ended; 0: begin. */
  afterTaskId: number;
}

import type { SqlClient } from "../base/change.ts";
import type { Json } from "../base/json.ts";
import type { ComingAnswer, ComingRequest } from "./coming-runs.ts";
import type { Onward } from "./flow.ts";

export interface ClaimRequest {
  sessionId: number;
  groupIds: number[];
  /** Tasks of those groups that this worker cannot run. */
  exceptTaskIds: number[];
  /** Runs due at or before this. */
  untilMs: number;
  limit: number;
  /** How many of them could start at once: of a group with a limit no more are taken. Absent: all. */
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
  dueMs: number;
  slotMs: number | null;
  priority: number;
  key: string | null;
  payload: Json;
  /** Of a run that was split: its part, from 0, and how many there are. */
  shard?: [index: number, total: number] | null;
  /** What an attempt before this one, or the run that this one goes on from, has left. */
  state?: Json;
  /** The task counts its places or plans from a run's end, or other runs depend on it, so its end takes the longer way. */
  linked: boolean;
}

/** Room that a worker of this process has for runs that are made here: claimed by the statement that makes them. */
export interface LocalClaims {
  sessionId: number;
  groupIds: number[];
  untilMs: number;
  room: number;
  /** @param readyMs the earliest due time of what was made and not claimed; Infinity: there is none */
  made(claimed: ClaimedRun[], readyMs: number): void;
  /** Claims may have been made that nobody was told of: the store's book has them. */
  lost(): void;
}

export interface ClaimAnswer {
  runs: ClaimedRun[];
  /** Asks when to claim again: the earliest due time left, null when nothing waits. What was claimed need not wait for it. */
  nextDue: () => Promise<number | null>;
  /** The session takes no more runs, so what waits was not looked at. */
  draining?: boolean;
}

/** Places that are free in another worker, for runs of these tasks. */
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
      /** Only of a success: written with it. */
      onward?: Onward;
      cutShort?: true;
    }
  /**
   * `ask`: not before an operator says so. `askedMs`: what `dueMs` has of the handler's `retryAfterMs`, for who sets it anew.
   * `cutShort`: by this worker and not by its handler, so that `onWorkerLost` has decided. `lost`: the attempt outlived its worker's
   * session; the store counts it, and ends the run when its task's `workerLosses` is reached.
   */
  | {
      kind: "retry";
      dueMs: number;
      error: string | null;
      ask?: boolean;
      askedMs?: number;
      cutShort?: true;
      lost?: boolean;
    }
  | { kind: "released" };

export interface Settlement {
  /** Of whom a server speaks for many sessions at once; default: the one that settles. */
  sessionId?: number;
  runId: number;
  fence: number;
  attempt: number;
  taskId: number;
  linked: boolean;
  /** Its task keeps no history of what went well: of a success only a trace is left, where no other run reads more. */
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
  /** `release`: it cannot have been started, so it goes back as if it had not been claimed. */
  outcome: "retry" | "fail" | "ask" | "cancel" | "release";
}

export interface ClaimStore {
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /** What could be claimed in the time that comes. */
  coming(request: ComingRequest): Promise<ComingAnswer>;
  /**
   * The turn of tasks that would wait behind the older runs of others: of each that has due runs, a few. Looks at a
   * bounded number of tasks. @returns where the next turn goes on; 0: the round is complete
   */
  turn(request: TurnRequest): Promise<{ runs: ClaimedRun[]; lastTaskId: number }>;
  /**
   * Applies verdicts whose fence is the run's. Repeatable: a verdict found applied already counts as applied. A claim ends
   * once: of several verdicts on one claim in a call the first counts. The others are recorded as late results, and the answer
   * speaks of the first alone.
   * @returns the fences whose verdict was refused, because the claim is no longer theirs
   */
  settle(sessionId: number, settlements: Settlement[], nowMs: number): Promise<Set<number>>;
  /** Settles one run inside the caller's transaction. @returns whether the claim still stood */
  settleIn(client: SqlClient, sessionId: number, settlement: Settlement, nowMs: number): Promise<boolean>;
  /** What this session holds by the store's book, for a worker that lost a reply. */
  heldBy(sessionId: number): Promise<ClaimedRun[]>;
  /** Which other workers have places for runs of these tasks, for a worker that has none. */
  roomElsewhere(sessionId: number, taskIds: number[]): Promise<RoomElsewhere[]>;
  /** Moves what was not taken back yet from a lost session of the same process to its new one. @returns what moved */
  adopt(oldSessionId: number, newSessionId: number): Promise<ClaimedRun[]>;
  /** Claims of this session that are asked back. */
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
   * Takes back claims of an ended session: those that it never reported as started at once, for its worker stops those too
   * when its trust ends; the others where the task's grace has passed since it was found silent.
   */
  reclaim(sessionId: number, silentForMs: number, nowMs: number, limit: number): Promise<ReclaimedRun[]>;
}
