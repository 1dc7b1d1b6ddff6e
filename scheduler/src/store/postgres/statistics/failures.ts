import type { Json } from "../../../base/json.ts";
import type { DeadLetterStore } from "../../../run/dead-letters.ts";
import { reasonOf } from "../../../run/error-fingerprint.ts";
import type { Failure } from "../../../run/handling/failure-groups.ts";
import type { Database } from "../database.ts";
import { runOutcome } from "../states.ts";
import { inNamespacesSql } from "../tasks/task-filter.ts";

/** `cutMs`: some failures before this time were not read; null if all were. */
type Row = { [Field in keyof Failure]: Failure[Field] | null } & { cutMs: number | null };

/** The maximum number of failures that are read for a caller of some namespaces, of which the newest are returned. */
const ofTasksMost = 100_000;

/**
 * Reads failed runs with the fingerprints of their dead letters, whatever became of these. At most `limit` runs are read, in the order of an
 * index, so the cost does not depend on the length of the history. For a caller of some namespaces the runs of each of their tasks are read,
 * so that the failures of other namespaces push nothing out; with very many failing tasks fewer are read of each. The subquery with a limit
 * keeps the planner from reading all dead letters.
 */
export function failureReads(database: Database): Pick<DeadLetterStore, "failures" | "reasons"> {
  const s = database.schema;
  const newest = (where: string, most: string) => `
           select id, ended_ms, task_id, session_id from ${s}.run_history
           where outcome = ${runOutcome.failed} and ended_ms >= $1 and ${where} order by ended_ms desc, id desc limit ${most}`;
  const counted = (table: string) => `exists (select from ${s}.${table} y where y.task_id = t.id and y.failed > 0)`;
  const ofNamespaces = `
         failing as materialized (
           select t.id from ${s}.task t where ${inNamespacesSql("t.name", "$2::text[]")} and (${counted("tally")} or ${counted("tally_delta")})),
         most as materialized (select greatest(1, least($3, ${ofTasksMost} / greatest(1, count(*)))) as each from failing),
         newest as materialized (
           select h.* from failing cross join lateral (${newest("task_id = failing.id and $4::int is null", "(select each from most)")}) h),
         failed as materialized (select * from newest order by ended_ms desc, id desc limit $3),
         cut as (
           select min(ended_ms) as at_ms from newest group by task_id having count(*) >= (select each from most)`;
  const ofAll = (where: string) => `
         failed as materialized (${newest(where, "$3")}),
         cut as (
           select null::bigint as at_ms where false`;
  return {
    async failures({ taskId, namespaces, sinceMs, limit }) {
      const [name, read] =
        taskId !== null
          ? ["failures-task", ofAll("task_id = $4 and $2::text[] is null")]
          : namespaces !== null
            ? ["failures-namespaces", ofNamespaces]
            : ["failures-all", ofAll("$4::int is null and $2::text[] is null")];
      const rows = await database.query<Row>(
        name as string,
        `with ${read}
           union all select min(ended_ms) from failed having count(*) >= $3),
         told as (
           select f.id as "runId", f.ended_ms as "endedMs", t.name as task, d.fingerprint, o.settings->>'release' as release,
                  r.first_ms as "releaseMs"
           from failed f join ${s}.task t on t.id = f.task_id
           cross join lateral (
             select fingerprint from ${s}.dead_letter where run_id = f.id and ended_ms = f.ended_ms limit 1) d
           left join ${s}.session o on o.id = f.session_id left join ${s}.release r on r.name = o.settings->>'release')
         select l.*, told.* from (select max(at_ms) as "cutMs" from cut) l left join told on "endedMs" >= coalesce("cutMs", $1)
         order by told."endedMs" desc, told."runId" desc`,
        [Math.round(sinceMs), taskId === null ? namespaces : null, limit, taskId],
      );
      return {
        failures: rows
          .filter((row): row is Row & Failure => row.runId !== null)
          .map(({ cutMs: _, ...failure }) => failure),
        allSinceMs: rows[0]?.cutMs ?? sinceMs,
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
