import type { Counters } from "../../../task/task-record.ts";
import type { Database } from "../database.ts";

export async function counters(database: Database, taskIds: number[]): Promise<Map<number, Counters>> {
  const s = database.schema;
  const names = ["succeeded", "failed", "cancelled", "skipped", "missed", "retried"] as const;
  const rows = await database.query<Counters & { taskId: number }>(
    "task-counters",
    `select task_id as "taskId", ${names.map((n) => `sum(${n})::bigint as ${n}`).join(", ")} from (
       select task_id, ${names.join(", ")} from ${s}.tally where task_id = any($1)
       union all select task_id, ${names.join(", ")} from ${s}.tally_delta where task_id = any($1)) x group by task_id`,
    [taskIds],
  );
  return new Map(rows.map(({ taskId, ...counters }) => [taskId, counters]));
}

export async function foldCounters(database: Database, limit: number): Promise<number> {
  const s = database.schema;
  const [row] = await database.query<{ folded: number }>(
    "task-fold",
    `with gone as (
       delete from ${s}.tally_delta where ctid = any(array(select ctid from ${s}.tally_delta limit $1 for update skip locked))
       returning *),
     folded as (
       insert into ${s}.tally as t (task_id, succeeded, failed, cancelled, skipped, missed, retried)
       select task_id, sum(succeeded), sum(failed), sum(cancelled), sum(skipped), sum(missed), sum(retried)
       from gone group by task_id order by task_id
       on conflict (task_id) do update set
         succeeded = t.succeeded + excluded.succeeded, failed = t.failed + excluded.failed,
         cancelled = t.cancelled + excluded.cancelled, skipped = t.skipped + excluded.skipped,
         missed = t.missed + excluded.missed, retried = t.retried + excluded.retried)
     select count(*)::int as folded from gone`,
    [limit],
  );
  return row?.folded ?? 0;
}
