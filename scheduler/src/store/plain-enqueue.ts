import type { EnqueueWrite } from "../store.ts";
import { numbers } from "./columns.ts";
import { notifySql } from "./signals.ts";
import { sourceNumber } from "./sources.ts";

/** As one text of JSON, which PostgreSQL reads whole before it makes rows of it. */
const payloadsLengthMax = 4_000_000;

/**
 * Many runs of one task of which nothing is asked but payload and time: the most common of all enqueues, and with many rows
 * the one whose own work counts. All is asked of the task once, nothing is joined or sorted, and what can be told of all is
 * told once. Beside the statement for everything it takes three quarters of PostgreSQL's time for 2,000 (4.4 µs a run in place of
 * 5.8, of which the table and its three indexes are 4): columns as a SELECT's list need no place to be kept in, as in a
 * FROM they do; payloads as elements of one JSON are read once, as an array's their quotes are taken off first; and it has a
 * plan that is good for any number, so that it is kept.
 *
 * $1 numbers, $2 due times from now on, $3 payloads, $4 now, $5 task, $6 the first that was drawn ahead, $7 the earliest due time, $8 source
 */
export const plainInsertSql = (s: string) => `
  with bounded as materialized (
    select exists (select from ${s}.operation where ended_ms is null and last_run_id >= $6) as yes
  ), t as materialized (
    select t.id, case when t.routed then 0 else t.group_id end as group_id, t.version, t.gate, case when t.lanes then '' end as limit_key,
           case when t.paused_ms is not null then 1 when t.gate > 0 then 0 else 2 end as state, (t.definition->>'priority')::smallint as priority
    from ${s}.task t where t.id = $5 and t.deleted_ms is null and not (select yes from bounded)
  ), made as (
    insert into ${s}.run (id, task_id, group_id, version, state, due_ms, created_ms, priority, gate, after_end, source, payload, limit_key)
    select i.id, t.id, t.group_id, t.version, t.state, i.due_in + $4::bigint, $4::bigint, t.priority, t.gate, false, $8::smallint, i.payload, t.limit_key
    from t cross join (
      select unnest($1::bigint[]) as id, unnest($2::bigint[]) as due_in, jsonb_array_elements($3::jsonb) as payload) i
    returning true
  )
  select (select count(*) from made) as made, bounded.yes as bounded, t.state,
         case when t.state = 2 then ${notifySql(s, "case when t.group_id = 0 then 'direct ' else 'ready ' end || $7::bigint")} end as told
  from bounded left join t on true`;

export interface PlainMade {
  made: number;
  bounded: boolean;
  state: number | null;
}

/** The statement's values; null where something else is asked of one of them. */
export function plainValues(writes: readonly EnqueueWrite[], ids: readonly number[], nowMs: number): unknown[] | null {
  const { taskId, source, payload: first } = writes[0] as EnqueueWrite;
  const payloads: string[] = [];
  const now = Math.round(nowMs);
  const due: number[] = [];
  let [soonest, length, own] = [Number.POSITIVE_INFINITY, 0, null as number | null];
  for (let i = 0; i < writes.length; i++) {
    const write = writes[i] as EnqueueWrite;
    if (write.taskId !== taskId || write.source !== source || write.key !== null || write.priority !== null)
      return null;
    if (write.limitKey != null || (write.payload === null) !== (first === null)) return null;
    const dueMs = Math.round(write.dueMs);
    due.push(dueMs - now);
    if (dueMs < soonest) soonest = dueMs;
    if (write.payload !== null) {
      payloads.push(write.payload);
      length += write.payload.length;
    }
    // Numbers rise.
    if (own === null && write.runId === undefined) own = ids[i] as number;
  }
  if (length > payloadsLengthMax) return null;
  return [
    numbers(ids),
    numbers(due),
    first === null ? null : `[${payloads.join(",")}]`,
    now,
    taskId,
    own,
    soonest,
    sourceNumber(source),
  ];
}
