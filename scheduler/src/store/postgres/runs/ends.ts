import { outcomes } from "../../../run/run.ts";
import type { EndStore, RunEnd } from "../../../run/run-end.ts";
import type { Database } from "../database.ts";
import { existing } from "../enqueue/enqueue.ts";
import { queryOf } from "../query.ts";

export const endStore = (database: Database): EndStore => ({
  awaitEnds: (runIds, nowMs) => awaitEnds(database, runIds, nowMs),
  ends: (runIds, sinceMs) => ends(database, runIds, sinceMs),
});

async function awaitEnds(database: Database, runIds: number[], nowMs: number): Promise<void> {
  await database.query(
    "awaited-add",
    `insert into ${database.schema}.awaited (run_id, since_ms) select x.id, $2 from unnest($1::bigint[]) as x (id) order by x.id
     on conflict (run_id) do update set since_ms = excluded.since_ms`,
    [runIds, Math.round(nowMs)],
  );
}

async function ends(database: Database, runIds: number[], sinceMs: number): Promise<RunEnd[]> {
  const s = database.schema;
  const rows = await database.query<EndRow>(
    "awaited-ends",
    `with over as materialized (
       select x.id from unnest($1::bigint[]) as x (id) where not exists (select from ${s}.run r where r.id = x.id)
     ), forgotten as (
       delete from ${s}.awaited where run_id in (
         select a.run_id from ${s}.awaited a join over o on o.id = a.run_id for update of a skip locked)
     )
     select o.id as "runId", h.outcome, h.result, h.error, t.name as task,
            h.id is null and not (select ${s}.whole_as_read()) as "mayComeBack" from over o
       left join ${s}.run_history h on h.id = o.id left join ${s}.task t on t.id = h.task_id`,
    [runIds],
  );
  // The store may have lost these runs. A process that remembers them puts them back during the recovery.
  const lost = rows.filter(({ mayComeBack }) => mayComeBack).map(({ runId }) => runId);
  if (lost.length > 0 && database.recovery) {
    await database.recovery.join();
    await awaitEnds(database, lost, sinceMs);
    return ends(database, runIds, sinceMs);
  }
  const unkept = rows.filter(({ outcome }) => outcome === null).map(({ runId }) => runId);
  // A success of a task with `history: "failures"` leaves only a trace.
  const traced = unkept.length === 0 ? new Set<number>() : await existing(queryOf(database), s, unkept, sinceMs, false);
  return rows.map(({ runId, outcome, task, result, error }): RunEnd => {
    if (outcome !== null) return { runId, task, result, error, outcome: outcomes[outcome] ?? null, kept: true };
    const ended = traced.has(runId) ? ("succeeded" as const) : null;
    return { runId, outcome: ended, task: null, result: null, error: null, kept: false };
  });
}

type EndRow = Pick<RunEnd, "runId" | "result" | "error" | "task"> & { outcome: number | null; mayComeBack: boolean };
