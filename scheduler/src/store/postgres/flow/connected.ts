import type { Database } from "../database.ts";
import { inNamespacesSql } from "../tasks/task-filter.ts";

/**
 * Returns names of tasks that follow others or are followed, at most `limit`, without removed tasks and tasks in other namespaces. With
 * `taskId`, only this task and those that are connected with it over any number of steps through such tasks, the nearest first. The
 * recursion ends when the outer statement has its rows, so a task that is connected with a hundred thousand others costs no more than one
 * that is connected with `limit`.
 */
export async function connected(
  database: Database,
  { taskId, namespaces, limit }: { taskId: number | null; namespaces: readonly string[] | null; limit: number },
): Promise<string[]> {
  const s = database.schema;
  const seenSql = `t.deleted_ms is null and ${inNamespacesSql("t.name", "$1::text[]")}`;
  const rows =
    taskId === null
      ? await database.query<{ name: string }>(
          "flow-all",
          `select t.name from (
             select f.upstream_id as id from ${s}.follow f join ${s}.task o on o.id = f.task_id and o.deleted_ms is null
             union select f.task_id from ${s}.follow f join ${s}.task o on o.id = f.upstream_id and o.deleted_ms is null) n
           join ${s}.task t on t.id = n.id and ${seenSql}
           order by t.name limit $2`,
          [namespaces, limit],
        )
      : await database.query<{ name: string }>(
          "flow-connected",
          `with recursive near (id, name) as (
             select t.id, t.name from ${s}.task t where t.id = $3::int and ${seenSql}
             union select x.id, seen.name from near cross join lateral (
               select f.task_id as id from ${s}.follow f where f.upstream_id = near.id
               union all select f.upstream_id from ${s}.follow f where f.task_id = near.id) x
             cross join lateral (select t.name from ${s}.task t where t.id = x.id and ${seenSql} offset 0) seen)
           select name from near limit $2`,
          [namespaces, limit, taskId],
        );
  return rows.map(({ name }) => name);
}
