import type { SqlClient } from "../../../base/change.ts";
import type { EnqueueWrite } from "../../../run/run-record.ts";
import { notifyReadySql } from "../cluster/signals.ts";
import { runState } from "../states.ts";
import { insertRunSql, ofTask, withTaskLabels } from "./new-run.ts";
import { sourceNumber } from "./sources.ts";

/**
 * Stores an enqueue in `run.again` of the started run that has the same key, to be made when that run ends. Because it is stored in that
 * run's own row, every statement that ends the run sees it, whatever the order of the two transactions: the statement inserts the new run
 * with the key as it deletes the old one.
 * @returns false if the run no longer exists
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
  // A statement that is ending the run holds a lock on its row. After its commit the run no longer exists and the UPDATE changes no row.
  const { rows } = await client.query(
    `update ${s}.run set again = $2::jsonb || jsonb_build_object('payload', $3::jsonb, 'runId', coalesce($4::bigint, nextval('${s}.run_id')),
       'sinceMs', ${sinceSql}, 'dueMs', least($5::bigint, ${sinceSql} + $7::bigint))
     where id = $1 returning true`,
    [holder, JSON.stringify(rest), payload, runId, Math.round(write.dueMs), Math.round(nowMs), maxWaitMs],
  );
  return rows.length > 0;
}

/** SQL: the time of the first enqueue that the next run replaces. */
const sinceSql = "coalesce((again->>'sinceMs')::bigint, $6::bigint)";

const given = (name: string, type: string) => `(g.again->>'${name}')::${type}`;

/**
 * SQL: the CTEs that insert the runs stored in `run.again`, for a statement that ends runs. `gone` has the ended runs, with the columns
 * task_id, key, again and ended_ms. The statement must select `againSql`.
 */
export const followAgainSql = (s: string) => `again as (
    ${insertRunSql(s, {
      // Another run may already have the stored number if a server was restored to an earlier moment.
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
