import { limits } from "../../base/limits.ts";
import { counterNames } from "../../task/task-record.ts";
import type { FigureStore, Figures } from "../figures.ts";
import { waitingSql, waitsForWorkerSql } from "./claims/ready.ts";
import { heldSnapshots } from "./cluster/snapshots.ts";
import type { Database } from "./database.ts";
import { runState, takesRuns } from "./states.ts";

/** The most runs that are read per priority of an addressee. More than one is read, because one session may serve several groups. */
const addressedLooks = 10;
/**
 * If the planner estimates fewer live runs than this, a scan counts all of them; otherwise only states with their own index are counted.
 */
const scannedRuns = 200_000;

/** The groups that are read: those that metrics show, and the first of the others. */
const shownGroups = limits.shownGroups + 1;

export function figureStore(database: Database): FigureStore {
  const s = database.schema;
  const counted = (state: string) =>
    `(select count(*) from (select from ${s}.run where ${state} limit ${limits.countedRuns}) c)::int`;
  return {
    async read(nowMs) {
      const [[ended], [size], oldest, groups, [leadership], snapshots] = await Promise.all([
        database.query<Figures["ended"]>(
          "figures-ended",
          `select ${counterNames.map((name) => `coalesce(sum(${name}), 0)::bigint as ${name}`).join(", ")}
           from (select ${counterNames.join(", ")} from ${s}.tally union all select ${counterNames.join(", ")} from ${s}.tally_delta) x`,
        ),
        database.query<{ rows: number }>(
          "figures-size",
          "select reltuples::float8 as rows from pg_class where oid = to_regclass($1)",
          [`${s}.run`],
        ),
        // The statement makes index probes per priority of each group, addressee and routed task, however many runs wait.
        database.query<{ group: string; dueMs: number }>(
          "figures-oldest",
          `select g.name as "group", min(o.due_ms)::float8 as "dueMs" from ${waitingSql(s, "$1::bigint + 1", 1, addressedLooks)} o
           join ${s}.task t on t.id = o.task_id join ${s}.worker_group g on g.id = t.group_id
           where ${waitsForWorkerSql(s)} group by g.name order by 2, 1 limit ${shownGroups}`,
          [Math.round(nowMs)],
        ),
        database.query<Figures["groups"][number]>(
          "figures-groups",
          `with served as (
             select name, count(*)::int as workers, coalesce(sum(capacity), 0)::int as capacity
             from ${s}.session cross join unnest(groups) as name where ${takesRuns} and coalesce(capacity, 1) > 0 group by name
           ) select g.name as "group", coalesce(o.workers, 0) as workers, coalesce(o.capacity, 0) as capacity
           from ${s}.worker_group g left join served o on o.name = g.name
           where exists (select from ${s}.task t where t.group_id = g.id and t.deleted_ms is null and t.paused_ms is null)
           order by workers, capacity, g.name limit ${shownGroups}`,
        ),
        database.query<{ term: number; led: boolean }>(
          "figures-leadership",
          `select l.term, exists (select from ${s}.session x where x.id = l.session_id and x.ended_ms is null) as led from ${s}.leadership l`,
        ),
        heldSnapshots(database),
      ]);
      const all = (size?.rows ?? 0) < scannedRuns;
      const live = await database.query<Record<string, number>>(
        all ? "figures-live-all" : "figures-live",
        all
          ? `select count(*) filter (where state = ${runState.held})::int as held, count(*) filter (where state = ${runState.paused})::int as paused,
                    count(*) filter (where state = ${runState.ready})::int as ready, count(*) filter (where state = ${runState.claimed})::int as claimed,
                    count(*) filter (where state = ${runState.undecided})::int as undecided from ${s}.run`
          : `select ${counted(`state = ${runState.ready}`)} as ready, ${counted(`state = ${runState.claimed}`)} as claimed, ${counted(`state = ${runState.held} and gate > 1`)} as held`,
      );
      return {
        ended: ended as Figures["ended"],
        live: live[0] as Figures["live"],
        oldest,
        groups,
        leadership: leadership ?? { term: 0, led: false },
        snapshots,
      };
    },
  };
}
