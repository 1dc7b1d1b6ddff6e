import { liveStates, outcomes } from "../../../run/run.ts";
import type { RunRecord } from "../../../run/run-record.ts";
import { readyMsSql } from "../claims/claimed-columns.ts";
import { runState } from "../states.ts";
import { sourceOf } from "./sources.ts";

/** SQL: an error reduced to its code and the first 500 characters of its message, for lists. */
const briefError = `case when r.error is not null then
  jsonb_strip_nulls(jsonb_build_object('code', r.error->>'code', 'message', left(r.error->>'message', 500))) end`;

/** Columns that the history stores of every run so that it can be run again, in addition to the columns that it stores anyway. */
export const inheritedColumns = "parent_id, inputs, limit_key, shard, origin, overrides, expires_ms, labels";

/** SQL: the timeout of an attempt of the run `r` of the task `t`, in ms; null if there is none. */
export const timeoutMsSql = "((t.definition || coalesce(r.overrides, '{}'))->>'timeoutMs')::bigint";

const json = (value: unknown) => value as RunRecord["payload"];

/**
 * SQL: selects live or ended runs as records.
 * @param brief true to leave out parts that can be large: payload, progress, result, and everything in the error except code and message
 */
export function runRecordSql(s: string, table: "run" | "run_history", brief = false): string {
  const live = table === "run";
  const of = (has: boolean, column: string) => (has && !brief ? `r.${column}` : "null::jsonb");
  const error = live ? "null::jsonb" : brief ? briefError : "r.error";
  return `select r.id, t.name as task, r.task_id, r.version, ${live ? "r.state" : `r.outcome + ${liveStates.length}`} as state, r.source, r.priority, r.key,
    r.slot_ms, r.due_ms, ${live ? readyMsSql : "r.ready_ms"} as ready_ms, r.created_ms, r.claimed_ms, r.started_ms, ${live ? "null::bigint" : "r.ended_ms"} as ended_ms, r.attempt, r.fence,
    o.node, o.settings->>'release' as release, ${of(true, "payload")} as payload, ${of(live, "progress")} as progress, ${of(!live, "result")} as result,
    ${error} as error, r.limit_key, r.shard, r.overrides, r.expires_ms, r.labels,
    ${live ? `case when r.state = ${runState.ready} and r.group_id < 0 then (select a.node from ${s}.session a where a.id = -r.group_id) end` : "null::text"} as addressee
    from ${s}.${table} r join ${s}.task t on t.id = r.task_id left join ${s}.session o on o.id = r.session_id`;
}

export const stateNames: RunRecord["state"][] = [...liveStates, ...outcomes];

export interface RunRow {
  id: number;
  task: string;
  task_id: number;
  version: number;
  state: number;
  source: number;
  priority: number;
  key: string | null;
  slot_ms: number | null;
  due_ms: number;
  ready_ms: number | null;
  created_ms: number;
  claimed_ms: number | null;
  started_ms: number | null;
  ended_ms: number | null;
  attempt: number;
  fence: number | null;
  node: string | null;
  release: string | null;
  payload: unknown;
  progress: unknown;
  result: unknown;
  error: unknown;
  addressee: string | null;
  limit_key: string | null;
  shard: [number, number] | null;
  overrides: RunRecord["overrides"];
  expires_ms: number | null;
  labels: RunRecord["labels"];
}

export function asRunRecord(row: RunRow): RunRecord {
  return {
    runId: row.id,
    task: row.task,
    taskId: row.task_id,
    version: row.version,
    state: stateNames[row.state] as RunRecord["state"],
    source: sourceOf(row.source),
    priority: row.priority,
    key: row.key,
    slotMs: row.slot_ms,
    dueMs: row.due_ms,
    readyMs: row.ready_ms,
    createdMs: row.created_ms,
    claimedMs: row.claimed_ms,
    startedMs: row.started_ms,
    endedMs: row.ended_ms,
    attempt: row.attempt,
    fence: row.fence,
    node: row.node,
    release: row.release,
    payload: json(row.payload),
    progress: json(row.progress),
    result: json(row.result),
    error: json(row.error),
    addressee: row.addressee,
    limitKey: row.limit_key,
    shard: row.shard,
    overrides: row.overrides ?? null,
    expiresMs: row.expires_ms,
    labels: row.labels ?? null,
  };
}
