import type { Json } from "../../../base/json.ts";
import type { DeadLetterStore } from "../../../run/dead-letters.ts";
import { reasonOf } from "../../../run/error-fingerprint.ts";
import type { Failure } from "../../../run/handling/failure-groups.ts";
import type { Database } from "../database.ts";
import { runOutcome } from "../states.ts";
import { inNamespacesSql } from "../tasks/task-filter.ts";

/** `cutMs`: some failures before this time were not read; null if all were. */
type Row = { [Field in keyof Failure]: Failure[Field] | null } & { cutMs: number | null };

/**
 * For a caller of some namespaces, about this many failures are read, the same number of each failing task but at least `ofTaskLeast`. The
 * newest of them are returned.
 */
const ofTasksMost = 100_000;
const ofTaskLeast = 200;

/**
 * Reads failed runs with the fingerprints of their dead letters, in whatever state these are. At most `limit` runs are read, in the order
 * of an index, so the cost does not depend on the length of the history. For a caller of some namespaces the runs of each of their tasks
 * are read, so that the failures of other namespaces push nothing out. With very many failing tasks, a few failures of each task are read
 * first, and then more of the tasks that have more, so that a busy task does not hide the failures of the others. The subquery with a limit
 * keeps the planner from reading all dead letters.
 */
export function failureReads(database: Database): Pick<DeadLetterStore, "failures" | "reasons"> {
  const s = database.schema;
  const newest = (where: string, most: string, read = "id, ended_ms, task_id, session_id") => `
           select ${read} from ${s}.run_history
           where outcome = ${runOutcome.failed} and ended_ms >= $1 and ${where} order by ended_ms desc, id desc limit ${most}`;
  const counted = (table: string) => `exists (select from ${s}.${table} y where y.task_id = t.id and y.failed > 0)`;
  const most = (table: string) =>
    `select least($3, greatest(${ofTaskLeast}, ${ofTasksMost} / greatest(1, count(*)))) as n from ${table}`;
  const ofNamespaces = `
         failing as materialized (
           select t.id from ${s}.task t where ${inNamespacesSql("t.name", "$2::text[]")} and (${counted("tally")} or ${counted("tally_delta")})
           and (${newest("task_id = t.id and $4::int is null", "1", "true")})),
         each as materialized (${most("failing")}),
         few as materialized (
           select h.* from failing cross join lateral (${newest("task_id = failing.id", "(select n + 1 from each)")}) h),
         busy as materialized (select task_id from few group by task_id having count(*) > (select n from each)),
         more as materialized (${most("busy")}),
         newest as materialized (
           select * from few where task_id not in (select task_id from busy) union all
           select h.* from busy cross join lateral (${newest("task_id = busy.task_id", "(select n + 1 from more)")}) h),
         failed as materialized (select * from newest order by ended_ms desc, id desc limit $3),
         cut as (
           select (array_agg(ended_ms order by ended_ms))[2] as at_ms from newest where task_id in (select task_id from busy)
           group by task_id having count(*) > (select n from more)`;
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
