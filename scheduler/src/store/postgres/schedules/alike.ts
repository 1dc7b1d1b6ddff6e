import type { AlikeTasks } from "../../../slots/alike-tasks.ts";
import type { TaskStore } from "../../../task/task-store.ts";
import type { BrowseStore } from "../../browse-store.ts";
import type { Database } from "../database.ts";
import { andTaskLabelsSql, taskIdsSql, taskValues } from "../tasks/task-filter.ts";

const readAtOnce = 1_000;

interface Row {
  id: number;
  count: number;
  names: string;
}

/**
 * Returns groups of tasks with equal schedules, each with one of its tasks, its size and the names of all its tasks. PostgreSQL forms the
 * groups, because definitions are large and different schedules few: reading half a million definitions took 11 s and 2 GB of memory.
 */
export async function alikeTasks(
  database: Database,
  tasks: TaskStore,
  { group, matching, namespaces, labels }: Parameters<BrowseStore["alikeTasks"]>[0],
): Promise<AlikeTasks[]> {
  const s = database.schema;
  const filter = {
    group: group ?? undefined,
    matching: matching ?? undefined,
    namespaces: namespaces === null ? undefined : [...namespaces],
  };
  const rows = await database.transaction(async (client) => {
    // The planner does not know that there are few different schedules, and would group by sorting the tasks, which takes 2.5 s for
    // half a million. Grouping by hash takes 0.9 s.
    await client.query("set local enable_sort = off");
    const { rows: found } = await client.query(
      `select min(t.id)::int as id, count(*)::int as count, string_agg(t.name, ' ') as names
       from ${s}.task t join ${s}.plan p on p.task_id = t.id
       where t.deleted_ms is null and t.version > 0 and t.id in (${taskIdsSql(s)})${andTaskLabelsSql("t", { labels })}
       group by t.definition->'schedule', t.definition->'calendar', t.definition->'blackout', p.zones_version, t.accounted_ms,
         t.paused_ms is null, t.paused_until_ms, case when (t.definition->'schedule'->>'jitterMs')::float8 > 0 then t.id end`,
      taskValues(filter),
    );
    return (found as unknown as Row[]).sort((a, b) => a.id - b.id);
  });
  const alike: AlikeTasks[] = [];
  for (let from = 0; from < rows.length; from += readAtOnce) {
    const some = rows.slice(from, from + readAtOnce);
    const records = new Map((await tasks.byIds(some.map(({ id }) => id))).map((task) => [task.taskId, task]));
    for (const { id, count, names } of some) {
      const task = records.get(id);
      if (task) alike.push({ task, count, names });
    }
  }
  return alike;
}
