import { outcomes } from "../../../run/run.ts";
import type { EndStore, RunEnd } from "../../../run/run-end.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";

/** A signal has room for 8,000 bytes. */
const numbersPerSignal = 400;

/**
 * The CTE `heard` signals the ends of those runs in `gone` that a caller awaits. PostgreSQL skips a SELECT in a CTE that the statement does not read, so
 * the statement must read it: `heardSql`. While the table `awaited` is empty, `gone` is not read for it.
 */
export const hearSql = (s: string) => `heard as (
    select count(${notifySql(s, "w.said")}) as heard from (
      select 'ended ' || string_agg(x.id::text, ' ') as said from (
        select a.run_id as id, row_number() over () / ${numbersPerSignal} as part from gone g join ${s}.awaited a on a.run_id = g.id
        where exists (select from ${s}.awaited)) x
      group by x.part) w)`;
export const heardSql = `(select heard from heard) as heard`;

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
      const traced = unkept.length === 0 ? new Set<number>() : await tracedOf(unkept, sinceMs);
      return rows.map(({ runId, outcome, ...row }): RunEnd => {
        if (outcome !== null) return { runId, ...row, outcome: outcomes[outcome] ?? null, kept: true };
        const ended = traced.has(runId) ? ("succeeded" as const) : null;
        return { runId, outcome: ended, task: null, result: null, error: null, kept: false };
      });
    },
  };

  /** Among runs without a history row, those that succeeded in a task with `history: "failures"`. */
  async function tracedOf(runIds: number[], sinceMs: number): Promise<Set<number>> {
    const rows = await database.query<{ id: number }>(
      "awaited-traced",
      `select distinct x.id from ${s}.run_trace t cross join unnest(t.run_ids) as x (id) where t.ended_ms >= $2 and x.id = any ($1::bigint[])`,
      [runIds, Math.floor(sinceMs)],
    );
    return new Set(rows.map(({ id }) => id));
  }
}

type EndRow = Pick<RunEnd, "runId" | "result" | "error" | "task"> & { outcome: number | null };
