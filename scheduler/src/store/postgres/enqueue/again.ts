import type { SqlClient } from "../../../base/change.ts";
import type { EnqueueWrite } from "../../../run/run-record.ts";
import { notifyReadySql } from "../cluster/signals.ts";
import { runState } from "../states.ts";
import { insertRunSql, ofTask, withTaskLabels } from "./new-run.ts";
import { sourceNumber } from "./sources.ts";

/**
 * `run.again`: the enqueue that will follow this run, which has the key and has begun. It is stored in the run's own row, so every
 * statement that ends the run sees it, however it is interleaved with the enqueue: the statement makes the new run, with the key, as it
 * deletes the old one.
 * Stores that enqueue.
 */
export async function park(
  client: SqlClient,
  s: string,
  holder: number,
  write: EnqueueWrite,
  nowMs: number,
): Promise<boolean> {
  const {
    runId = null,
    payload,
    priority,
    limitKey = null,
    overrides = null,
    expiresMs = null,
    labels = null,
    maxWaitMs = null,
    source,
  } = write;
  const rest = { priority, limitKey, overrides, expiresMs, labels, source: sourceNumber(source) };
  // A statement that is ending the run holds its row; once it has committed, the run is gone, or it has this enqueue.
  const { rows } = await client.query(
    `update ${s}.run set again = $2::jsonb || jsonb_build_object('payload', $3::jsonb, 'runId', coalesce($4::bigint, nextval('${s}.run_id')),
       'sinceMs', ${sinceSql}, 'dueMs', least($5::bigint, ${sinceSql} + $7::bigint))
     where id = $1 returning true`,
    [holder, JSON.stringify(rest), payload, runId, Math.round(write.dueMs), Math.round(nowMs), maxWaitMs],
  );
  return rows.length > 0;
}

/** The time of the first enqueue that the next run stands for. */
const sinceSql = "coalesce((again->>'sinceMs')::bigint, $6::bigint)";

const given = (name: string, type: string) => `(g.again->>'${name}')::${type}`;

/**
 * The CTEs that add these enqueues to a statement that ends runs; `gone` has the ended runs, with the columns task_id, key, again and
 * ended_ms. The statement must read `againSql`.
 */
export const followAgainSql = (s: string) => `again as (
    ${insertRunSql(s, {
      // Another run may have the drawn number if a server was restored to an earlier moment.
      id: `case when exists (select from ${s}.run x where x.id = ${given("runId", "bigint")}) then nextval('${s}.run_id') else ${given("runId", "bigint")} end`,
      due_ms: `greatest(${given("dueMs", "bigint")}, g.ended_ms)`,
      created_ms: "g.ended_ms",
      priority: `coalesce(${given("priority", "smallint")}, ${ofTask.priority})`,
      source: given("source", "smallint"),
      key: "g.key",
      payload: "nullif(g.again->'payload', 'null')",
      limit_key: `coalesce(g.again->>'limitKey', case when t.lanes then g.key end)`,
      overrides: "nullif(g.again->'overrides', 'null')",
      expires_ms: given("expiresMs", "bigint"),
      labels: withTaskLabels("nullif(g.again->'labels', 'null')"),
      since_ms: given("sinceMs", "bigint"),
    })}
    from gone g join ${s}.task t on t.id = g.task_id and t.deleted_ms is null where g.again is not null
    returning state, due_ms, group_id
  ), again_told as (${notifyReadySql(s, `again where state = ${runState.ready}`)})`;
export const againSql = "(select signals from again_told) as again_told";
