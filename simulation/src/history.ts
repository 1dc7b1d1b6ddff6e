import type { OperationRequest } from "../../scheduler/src/run/operations.ts";
import type { TaskDefinition } from "../../scheduler/src/task/task.ts";
import type { LockHistory } from "./lock-history.ts";

/**
 * An attempt, as recorded by its handler in the worker. `startStoreMs` is by the server's clock, which nodes can only estimate.
 */
export interface Execution {
  readonly node: string;
  readonly life: number;
  readonly run: number;
  readonly task: string;
  readonly attempt: number;
  readonly fence: number;
  readonly slotMs: number | null;
  readonly dueMs: number;
  readonly startMs: number;
  readonly startStoreMs: number;
  /** The process's estimate of the store's time at the start, in epoch ms. */
  readonly believedMs: number;
  /** When the handler ended; null: its process was killed, or it was still running at the end. */
  endMs: number | null;
  how: "returned" | "threw" | "stopped" | null;
  /** The error code with which the handler's signal was aborted; null: it was not aborted. */
  stoppedWhy: string | null;
  /** Set if the timeout aborted the attempt, whether or not the handler respected its signal. */
  timedOut?: true;
  /** True if the handler ignores its signal. */
  readonly deaf: boolean;
  /** Set for remote workers: they report how long ago an event happened, and the server converts that to a time by its own clock. */
  readonly toldAgo?: boolean;
}

/** A request to the cluster. `unknown`: there was no response, or the response does not say whether the request was carried out. */
export interface Operation {
  readonly id: string;
  readonly kind:
    | "save"
    | "pause task"
    | "resume task"
    | "remove task"
    | "enqueue"
    | "cancel"
    | "begin operation"
    | "stop operation";
  readonly node: string;
  readonly task: string;
  readonly invokedMs: number;
  readonly invokedStoreMs: number;
  endedMs: number | null;
  endedStoreMs: number | null;
  outcome: "ok" | "refused" | "unknown";
  readonly definition?: TaskDefinition;
  /** Only for an enqueue: its due time, its keys, and the resulting run. */
  readonly dueMs?: number;
  readonly key?: string | null;
  readonly limitKey?: string | null;
  run?: number;
  created?: boolean;
  /** Only for an operation on many runs or tasks: the request, and the operation's id. */
  request?: OperationRequest;
  operationId?: number;
  /** True if this change was a part of an operation on many tasks, which does not wait for the runs that it withdraws. */
  readonly isOfMany?: boolean;
  answer?: string;
}

/** A statement that the checks need, with the time at which the server had carried it out. */
export interface Applied {
  readonly atMs: number;
  readonly storeMs: number;
  readonly who: string;
  readonly name: string;
  readonly values: readonly unknown[];
  readonly rows: readonly Record<string, unknown>[];
}

/** Name of an entry in the list of statements that marks a failover: the new store may lack some of the earlier statements. */
export const wentBack = "(another store, of an earlier moment)";

/** An event from outside that affected the cluster, such as a fault. */
export interface Happening {
  readonly atMs: number;
  readonly what: string;
}

export type Row = Record<string, unknown>;

/** The rows of the store's tables at the end. */
export interface Dump {
  readonly task: Row[];
  readonly task_version: Row[];
  readonly plan: Row[];
  readonly slot: Row[];
  readonly slot_range: Row[];
  readonly run: Row[];
  readonly run_history: Row[];
  readonly attempt: Row[];
  readonly late_result: Row[];
  readonly session: Row[];
  readonly term: Row[];
  readonly leadership: Row[];
  readonly tally: Row[];
  readonly operation: Row[];
  /** Audit entries of operations: each start and each stop of one. */
  readonly audit: Row[];
  readonly dead_letter: Row[];
}

export const dumped = {
  task: "select id, name, version, paused_ms, deleted_ms, definition, changed_ms from S.task order by id",
  task_version: "select task_id, version, definition, author, reason, changed_ms from S.task_version order by 1, 2",
  plan: "select task_id, version, next_slot_ms, paused from S.plan order by 1",
  slot: "select task_id, slot_ms, outcome, run_id, reason, accepted_ms from S.slot order by 1, 2",
  slot_range:
    "select task_id, version, from_ms, to_ms, slots, outcome, reason, recorded_ms from S.slot_range order by id",
  run: "select id, task_id, slot_ms, due_ms, state, fence, session_id, attempt, source, key, recall, gate, created_ms, claimed_ms, parent_id from S.run order by id",
  run_history:
    "select id, task_id, slot_ms, due_ms, fence, session_id, attempt, outcome, source, key, started_ms, ended_ms, parent_id, case when outcome in (2, 3) then error->>'message' end as why from S.run_history order by id, fence",
  attempt:
    "select run_id, attempt, fence, session_id, outcome, started_ms, ended_ms, error->>'code' as error from S.attempt order by run_id, fence",
  late_result: "select run_id, fence, outcome, at_ms from S.late_result order by run_id, fence",
  session: "select id, node, role, started_ms, ended_ms, ended_why, timeout_ms from S.session order by id",
  term: "select term, session_id, node, elected_ms, ended_ms from S.term order by term",
  leadership: "select term, session_id from S.leadership",
  tally: `select task_id, sum(succeeded)::float8 as succeeded, sum(failed)::float8 as failed, sum(cancelled)::float8 as cancelled,
            sum(skipped)::float8 as skipped, sum(missed)::float8 as missed, sum(retried)::float8 as retried
          from (select task_id, succeeded, failed, cancelled, skipped, missed, retried from S.tally
                union all select * from S.tally_delta) x group by task_id order by 1`,
  operation:
    "select id, kind, filter, range, reason, state, total, done, passed, coalesce((cursor->>'late')::int, 0) as late, coalesce(jsonb_array_length(cursor->'asked'), 0) as asked, failed, error, last_run_id, created_ms, ended_ms from S.operation order by id",
  audit: "select act, named from S.audit where about = 'operation' order by id",
  dead_letter: "select run_id, task_id, state, redriven_by, operation_id from S.dead_letter order by run_id",
} as const satisfies Record<keyof Dump, string>;

/**
 * Everything that a checker may read. `slotMs`, `dueMs`, `believedMs` and names that end in `StoreMs` are epoch ms by the store's clock.
 * In a simulation, other points in time are virtual ms since its start. Durations are in ms.
 */
export interface History {
  readonly endMs: number;
  readonly endStoreMs: number;
  readonly healMs: number;
  readonly recoveredMs: number;
  /** The epoch time of the store's clock when the simulation's time was 0, in ms, if the clock has made no step. */
  readonly epochMs: number;
  /** Largest error of a process's estimate of the store's time, in ms: steps of the store's clock, plus half of the longest round trip. */
  readonly clockErrorMs: number;
  readonly sessionTimeoutMs: number;
  /** By how many ms any event may be late because the machine is busy; 0 in virtual time. */
  readonly slackMs: number;
  readonly nodes: readonly string[];
  readonly concurrency: number;
  /** True if a coordination service beside the store reports which processes are alive. */
  readonly coordination: boolean;
  readonly executions: readonly Execution[];
  readonly operations: readonly Operation[];
  readonly applied: readonly Applied[];
  readonly happenings: readonly Happening[];
  /** Number of statements that had to wait for a lock. */
  readonly blocked: number;
  readonly dump: Dump;
  /** Only for a history with locks. */
  readonly locks?: LockHistory | null;
}

export interface Violation {
  readonly invariant: string;
  readonly what: string;
  /** The time of the violation, and the run or task that it concerns, if known. */
  readonly atMs?: number;
  readonly run?: number;
  readonly task?: string;
}

/** Checks one invariant on a history. `check` returns the first violation; undefined: none. */
export interface Checker {
  /** The invariant's number in the list of invariants, and what it demands. */
  readonly invariant: string;
  check(history: History): Omit<Violation, "invariant"> | undefined;
}
