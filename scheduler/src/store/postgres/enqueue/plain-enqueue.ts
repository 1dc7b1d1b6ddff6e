import type { EnqueueWrite } from "../../../run/run-record.ts";
import { notifySql } from "../cluster/signals.ts";
import { numbers } from "../columns.ts";
import { runState } from "../states.ts";
import { type Durability, durabilityColumn } from "./durability.ts";
import { insertRunSql, ofTask } from "./new-run.ts";
import { sourceNumber } from "./sources.ts";

/**
 * The most characters of all payloads in one statement. They are sent as one JSON text, which PostgreSQL parses as a whole before it splits
 * it into rows.
 */
const payloadsLengthMax = 4_000_000;

/**
 * SQL: inserts many runs of one task that have only a payload and a due time. This is the most common enqueue, so its cost per row matters.
 * The task is read once, nothing is joined or sorted, and values that all rows share are sent once. For 2,000 runs it takes three quarters
 * of the general statement's time in PostgreSQL. Set functions in a SELECT list need no storage for their rows, while in FROM they do. The
 * rows are not counted, because all are inserted or, if there is no such task, none. Payloads in one JSON text are parsed once, while in an
 * array their quotes are removed first. The plan suits any number of runs, so it is cached.
 *
 * $1 numbers, $2 due times relative to now, $3 payloads, $4 now, $5 task, $6 the first number that was drawn ahead, $7 source, $8 the
 * earliest due time if the statement must send the signal, else null
 */
export const plainInsertSql = (s: string, durability: Durability) => `
  with bounded as materialized (
    select exists (select from ${s}.operation where ended_ms is null and last_run_id >= $6) as yes
  ), t as materialized (
    select t.id, ${ofTask.group_id} as group_id, t.version, t.gate, ${ofTask.limit_key} as limit_key,
           ${ofTask.state} as state, ${ofTask.priority} as priority, t.run_labels${durabilityColumn(durability)}
    from ${s}.task t where t.id = $5 and t.deleted_ms is null and not (select yes from bounded)
  ), made as (
    ${insertRunSql(s, {
      id: "i.id",
      group_id: "t.group_id",
      state: "t.state",
      due_ms: "i.due_in + $4::bigint",
      created_ms: "$4::bigint",
      priority: "t.priority",
      source: "$7::smallint",
      payload: "i.payload",
      limit_key: "t.limit_key",
    })}
    from t cross join (
      select unnest($1::bigint[]) as id, unnest($2::bigint[]) as due_in, jsonb_array_elements($3::jsonb) as payload) i
  )
  select case when t.id is null then 0 else cardinality($1::bigint[]) end as made, bounded.yes as bounded, t.state, t.group_id = 0 as direct,
         case when $8::bigint is not null and t.state = ${runState.ready} then ${notifySql(s, "case when t.group_id = 0 then 'direct ' else 'ready ' end || $8::bigint")} end as told
  from bounded left join t on true`;

export interface PlainMade {
  made: number;
  bounded: boolean;
  state: number | null;
  direct: boolean | null;
}

/** Returns the statement's parameters; null if one of the enqueues needs the general statement. */
export function plainValues(
  writes: readonly EnqueueWrite[],
  ids: readonly number[],
  nowMs: number,
  toldMs: number | null,
): unknown[] | null {
  const { taskId, source, payload: first } = writes[0] as EnqueueWrite;
  const payloads: string[] = [];
  const now = Math.round(nowMs);
  const due: number[] = [];
  let [length, own] = [0, null as number | null];
  for (let i = 0; i < writes.length; i++) {
    const write = writes[i] as EnqueueWrite;
    if (write.taskId !== taskId || write.source !== source || write.key !== null || write.priority !== null)
      return null;
    if (write.limitKey != null || write.overrides != null || write.expiresMs != null || write.labels != null)
      return null;
    if ((write.payload === null) !== (first === null)) return null;
    due.push(Math.round(write.dueMs) - now);
    if (write.payload !== null) {
      payloads.push(write.payload);
      length += write.payload.length;
    }
    // The first number is the lowest, because the numbers are in rising order.
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
    sourceNumber(source),
    toldMs,
  ];
}
