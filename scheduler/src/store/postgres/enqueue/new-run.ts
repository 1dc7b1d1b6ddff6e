import { runState } from "../states.ts";

/** The columns of `run` that a statement can set for a new run, in the order in which statements list them. */
const columns = [
  "id",
  "task_id",
  "group_id",
  "version",
  "state",
  "due_ms",
  "created_ms",
  "priority",
  "gate",
  "after_end",
  "source",
  "key",
  "payload",
  "checkpoint",
  "limit_key",
  "session_id",
  "fence",
  "claimed_ms",
  "started_ms",
  "attempt",
  "losses",
  "snoozes",
  "parent_id",
  "inputs",
  "slot_ms",
  "origin",
  "shard",
  "overrides",
  "expires_ms",
  "again",
  "labels",
  "since_ms",
] as const;

type Column = (typeof columns)[number];
type Given = "due_ms" | "created_ms" | "source";

/** An SQL expression for each column. A column without an expression is taken from the task, or gets the table's default. */
type NewRun = Record<Given, string> & { [name in Exclude<Column, Given>]?: string };

/** SQL expressions for columns of a new run: from the current version of its task `t`, except `after_end`, which starts as false. */
export const ofTask = {
  task_id: "t.id",
  group_id: "case when t.routed then 0 else t.group_id end",
  version: "t.version",
  state: `case when t.paused_ms is not null then ${runState.paused} when t.gate > 0 then ${runState.held} else ${runState.ready} end`,
  priority: "(t.definition->>'priority')::smallint",
  gate: "t.gate",
  after_end: "false",
  limit_key: "case when t.lanes then '' end",
  labels: "t.run_labels",
} as const;

/**
 * SQL: the labels of a run: the task's labels, some of which the run's own labels may replace.
 * @param own SQL for the run's labels or null
 */
export const withTaskLabels = (own: string): string => `coalesce(t.run_labels || ${own}, ${own}, t.run_labels)`;

/** SQL: the payload of runs that are created without one: planned runs, and runs that follow other runs. */
export const slotPayload = "nullif(t.definition->'slotPayload', 'null')";

/** The beginning of every statement that inserts runs. The caller appends a FROM clause, in which the task is `t`. */
export function insertRunSql(s: string, given: NewRun): string {
  const run: { [name in Column]?: string } = { id: `nextval('${s}.run_id')`, ...ofTask, ...given };
  const present = columns.filter((column) => run[column] !== undefined);
  return `insert into ${s}.run (${present.join(", ")}) select ${present.map((column) => run[column]).join(", ")}`;
}
