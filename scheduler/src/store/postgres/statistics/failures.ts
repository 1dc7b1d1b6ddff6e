import type { Json } from "../../../base/json.ts";
import type { DeadLetterStore } from "../../../run/dead-letters.ts";
import { reasonOf } from "../../../run/error-fingerprint.ts";
import type { Failure } from "../../../run/handling/failure-groups.ts";
import type { Database } from "../database.ts";
import { runOutcome } from "../states.ts";
import { inNamespacesSql } from "../tasks/task-filter.ts";

type Row = { [Field in keyof Failure]: Failure[Field] | null } & { read: number; oldestMs: number | null };

/**
 * Reads failed runs with the fingerprints of their dead letters, whatever became of these. At most `limit` runs are read, in the order of an
 * index, so the cost does not depend on the length of the history; namespaces are tested on these runs. The subquery with a limit keeps the
 * planner from reading all dead letters.
 */
export function failureReads(database: Database): Pick<DeadLetterStore, "failures" | "reasons"> {
  const s = database.schema;
  return {
    async failures({ taskId, namespaces, sinceMs, limit }) {
      const rows = await database.query<Row>(
        taskId === null ? "failures-all" : "failures-task",
        `with failed as materialized (
           select id, ended_ms, task_id, session_id from ${s}.run_history
           where outcome = ${runOutcome.failed} and ended_ms >= $1 ${taskId === null ? "and $4::int is null" : "and task_id = $4"}
           order by ended_ms desc, id desc limit $3),
         told as (
           select f.id as "runId", f.ended_ms as "endedMs", t.name as task, d.fingerprint, o.settings->>'release' as release,
                  r.first_ms as "releaseMs"
           from failed f join ${s}.task t on t.id = f.task_id and ${inNamespacesSql("t.name", "$2::text[]")}
           cross join lateral (
             select fingerprint from ${s}.dead_letter where run_id = f.id and ended_ms = f.ended_ms limit 1) d
           left join ${s}.session o on o.id = f.session_id left join ${s}.release r on r.name = o.settings->>'release')
         select l.*, told.* from (select count(*)::int as read, min(ended_ms) as "oldestMs" from failed) l left join told on true
         order by told."endedMs" desc, told."runId" desc`,
        [Math.round(sinceMs), namespaces, limit, taskId],
      );
      const [first] = rows;
      return {
        failures: rows.filter((row): row is Row & Failure => row.runId !== null),
        allSinceMs: first && first.read >= limit ? (first.oldestMs ?? sinceMs) : sinceMs,
      };
    },

    async reasons(runIds) {
      const rows = await database.query<{ id: number; error: Json }>(
        "failure-reasons",
        `select id, error from ${s}.run_history where id = any($1)`,
        [runIds],
      );
      return new Map(rows.map(({ id, error }) => [id, reasonOf(error)]));
    },
  };
}
