import { type Counters, counterNames } from "../../../task/task-record.ts";
import type { Database } from "../database.ts";

export async function counters(database: Database, taskIds: number[]): Promise<Map<number, Counters>> {
  const s = database.schema;
  const rows = await database.query<Counters & { taskId: number }>(
    "task-counters",
    `select task_id as "taskId", ${counterNames.map((n) => `sum(${n})::bigint as ${n}`).join(", ")} from (
       select task_id, ${counterNames.join(", ")} from ${s}.tally where task_id = any($1)
       union all select task_id, ${counterNames.join(", ")} from ${s}.tally_delta where task_id = any($1)) x group by task_id`,
    [taskIds],
  );
  return new Map(rows.map(({ taskId, ...counters }) => [taskId, counters]));
}

/**
 * Adds up to `limit` counter rows to the tasks' totals. Totals that last rose in an earlier hour are first kept in `task_counts` as the
 * state at the end of that hour.
 * @returns the number of counter rows that were added
 */
export async function foldCounters(database: Database, limit: number, hour: number): Promise<number> {
  const s = database.schema;
  const [row] = await database.query<{ folded: number }>(
    "task-fold",
    `with gone as (
       delete from ${s}.tally_delta where ctid = any(array(select ctid from ${s}.tally_delta limit $1 for update skip locked))
       returning *),
     sums as (select task_id, ${counterNames.map((n) => `sum(${n}) as ${n}`).join(", ")} from gone group by task_id),
     kept as (
       insert into ${s}.task_counts (task_id, hour, ${counterNames.join(", ")})
       select t.task_id, t.hour, ${counterNames.map((n) => `t.${n}`).join(", ")} from ${s}.tally t join sums using (task_id) where t.hour < $2
       order by t.task_id
       on conflict (task_id, hour) do update set ${counterNames.map((n) => `${n} = excluded.${n}`).join(", ")}),
     folded as (
       insert into ${s}.tally as t (task_id, hour, ${counterNames.join(", ")})
       select task_id, $2, ${counterNames.join(", ")} from sums order by task_id
       on conflict (task_id) do update set
         hour = greatest(t.hour, excluded.hour), succeeded = t.succeeded + excluded.succeeded, failed = t.failed + excluded.failed,
         cancelled = t.cancelled + excluded.cancelled, skipped = t.skipped + excluded.skipped,
         missed = t.missed + excluded.missed, retried = t.retried + excluded.retried)
     select count(*)::int as folded from gone`,
    [limit, hour],
  );
  return row?.folded ?? 0;
}
