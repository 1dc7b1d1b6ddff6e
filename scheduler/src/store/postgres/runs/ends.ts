import { outcomes } from "../../../run/run.ts";
import type { EndStore, RunEnd } from "../../../run/run-end.ts";
import type { Database } from "../database.ts";
import { existing } from "../enqueue/enqueue.ts";
import { queryOf } from "../query.ts";

export function endStore(database: Database): EndStore {
  const s = database.schema;
  return {
    async awaitEnds(runIds, nowMs) {
      await database.query(
        "awaited-add",
        `insert into ${s}.awaited (run_id, since_ms) select x.id, $2 from unnest($1::bigint[]) as x (id) order by x.id
         on conflict (run_id) do update set since_ms = excluded.since_ms`,
        [runIds, Math.round(nowMs)],
      );
    },

    async ends(runIds, sinceMs) {
      const rows = await database.query<EndRow>(
        "awaited-ends",
        `with over as materialized (
           select x.id from unnest($1::bigint[]) as x (id) where not exists (select from ${s}.run r where r.id = x.id)
         ), forgotten as (
           delete from ${s}.awaited where run_id in (
             select a.run_id from ${s}.awaited a join over o on o.id = a.run_id for update of a skip locked)
         )
         select o.id as "runId", h.outcome, h.result, h.error, t.name as task from over o
           left join ${s}.run_history h on h.id = o.id left join ${s}.task t on t.id = h.task_id`,
        [runIds],
      );
      const unkept = rows.filter(({ outcome }) => outcome === null).map(({ runId }) => runId);
      // A success of a task with `history: "failures"` leaves only a trace.
      const traced =
        unkept.length === 0 ? new Set<number>() : await existing(queryOf(database), s, unkept, sinceMs, false);
      return rows.map(({ runId, outcome, ...row }): RunEnd => {
        if (outcome !== null) return { runId, ...row, outcome: outcomes[outcome] ?? null, kept: true };
        const ended = traced.has(runId) ? ("succeeded" as const) : null;
        return { runId, outcome: ended, task: null, result: null, error: null, kept: false };
      });
    },
  };
}

type EndRow = Pick<RunEnd, "runId" | "result" | "error" | "task"> & { outcome: number | null };
