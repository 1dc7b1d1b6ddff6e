import type { OperationRequest } from "../../scheduler/src/run/operations.ts";
import type { TaskDefinition } from "../../scheduler/src/task/task.ts";
import type { LockHistory } from "./lock-history.ts";

/** An attempt in its worker: told by the handler itself. `storeMs` is the server's clock, which no node can read so well. */
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
  /** What its process took the store's time for. */
  readonly believedMs: number;
  /** How the handler ended; null: its process was killed, or it was at work at the end. */
  endMs: number | null;
  how: "returned" | "threw" | "stopped" | null;
  /** The code of what told it to stop. */
  stoppedWhy: string | null;
  /** It was told that its time was over, whether it looked at its signal or not. */
  timedOut?: true;
  /** It does not look at its signal. */
  readonly deaf: boolean;
  /** Its worker tells its server how long ago something was, which makes a time of it by its own reading. */
  readonly toldAgo?: boolean;
}

/** Something asked of the cluster. `unknown`: no answer came, or one that says neither. */
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
  /** Of an enqueue: when it is wanted, and what came of it. */
  readonly dueMs?: number;
  readonly key?: string | null;
  readonly limitKey?: string | null;
  run?: number;
  created?: boolean;
  /** Of an operation on many. */
  request?: OperationRequest;
  operationId?: number;
  /** It is told of here because an operation on many did it; nobody waits for what that asks back from its workers. */
  readonly isOfMany?: boolean;
  answer?: string;
}

/** A statement that changed something the checks ask for, when the server had done it. */
export interface Applied {
  readonly atMs: number;
  readonly storeMs: number;
  readonly who: string;
  readonly name: string;
  readonly values: readonly unknown[];
  readonly rows: readonly Record<string, unknown>[];
}

/** Stands in a list of these as the name of a moment in which a store took this one's place that may lack some of what is listed before. */
export const wentBack = "(another store, of an earlier moment)";

/** What happened to the cluster from outside. */
export interface Happening {
  readonly atMs: number;
  readonly what: string;
}

export type Row = Record<string, unknown>;

/** The store's tables at the end. */
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
  /** Of operations: who began and stopped them. */
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
          from (select * from S.tally union all select * from S.tally_delta) x group by task_id order by 1`,
  operation:
    "select id, kind, filter, range, reason, state, total, done, passed, coalesce((cursor->>'late')::int, 0) as late, failed, error, last_run_id, created_ms, ended_ms from S.operation order by id",
  audit: "select act, named from S.audit where about = 'operation' order by id",
  dead_letter: "select run_id, task_id, state, redriven_by, operation_id from S.dead_letter order by run_id",
} as const satisfies Record<keyof Dump, string>;

/** Everything that a checker may look at. Times ending in Ms without more are the universe's. */
export interface History {
  readonly endMs: number;
  readonly endStoreMs: number;
  readonly healMs: number;
  readonly recoveredMs: number;
  /** What the store's clock shows at 0, if it makes no step. */
  readonly epochMs: number;
  /** How wrong a process may be about the store's time: by steps of the store's clock, and half of the longest round trip. */
  readonly clockErrorMs: number;
  readonly sessionTimeoutMs: number;
  /** How much later than it should anything may be done, for want of a processor: 0 on virtual time. */
  readonly slackMs: number;
  readonly nodes: readonly string[];
  readonly concurrency: number;
  /** A service beside the store tells who lives. */
  readonly coordination: boolean;
  readonly executions: readonly Execution[];
  readonly operations: readonly Operation[];
  readonly applied: readonly Applied[];
  readonly happenings: readonly Happening[];
  /** How often a statement had to wait for a lock. */
  readonly blocked: number;
  readonly dump: Dump;
  /** Of a history in which locks were played. */
  readonly locks?: LockHistory | null;
}

export interface Violation {
  readonly invariant: string;
  readonly what: string;
  /** Around which time to look, and for which run or task. */
  readonly atMs?: number;
  readonly run?: number;
  readonly task?: string;
}

/** One invariant of the list, over one history: what breaks it first. */
export interface Checker {
  /** Its number in the list of invariants, with the words for what is looked at. */
  readonly invariant: string;
  check(history: History): Omit<Violation, "invariant"> | undefined;
}
