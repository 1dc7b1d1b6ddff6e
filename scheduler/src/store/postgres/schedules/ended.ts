import type { Change, SqlClient } from "../../../base/change.ts";
import { isCarillonError } from "../../../base/errors.ts";
import { letterState } from "../states.ts";
import type { Tasks } from "../tasks/read.ts";
import { remove } from "../tasks/stop.ts";

const readTogether = 500;

/**
 * SQL condition: the task `t` with its plan `p` has `atEnd` and is not paused, its schedule has no slot left, and it has no live
 * run.
 */
export const endedSql = (s: string): string =>
  `p.at_end and p.next_slot_ms is null and not p.paused and t.deleted_ms is null and t.definition->'schedule'->>'type' <> 'manual'
   and not exists (select from ${s}.run r where r.task_id = t.id)`;

/**
 * SQL condition: the task is to be removed. Tasks with open dead letters stay, because a failed run can be rerun only while its task
 * exists.
 */
const removableSql = (s: string): string =>
  `${endedSql(s)} and t.definition->>'atEnd' = 'remove'
   and not exists (select from ${s}.dead_letter d where d.task_id = t.id and d.state = ${letterState.open})`;

/** @see TaskStore.removeEnded */
export async function removeEnded(tasks: Tasks, change: Change): Promise<string[]> {
  const { database, s } = tasks;
  const removed: string[] = [];
  for (let afterId = 0; ; ) {
    const rows = await database.query<{ id: number; name: string }>(
      "tasks-ended",
      `select t.id, t.name from ${s}.plan p join ${s}.task t on t.id = p.task_id
       where ${removableSql(s)} and p.task_id > $1 order by p.task_id limit ${readTogether}`,
      [afterId],
    );
    for (const { id, name } of rows) {
      let isStill = false;
      const isWanted = async (client: SqlClient) => {
        const { rows: still } = await client.query(
          `select from ${s}.plan p join ${s}.task t on t.id = p.task_id where p.task_id = $1 and ${removableSql(s)}`,
          [id],
        );
        isStill = still.length > 0;
        return isStill;
      };
      try {
        await remove(tasks, name, { ...change, reason: "its schedule is over" }, { isWanted });
      } catch (error) {
        // Another process has already removed the task.
        if (!isCarillonError(error, "TASK_UNKNOWN")) throw error;
      }
      if (isStill) removed.push(name);
    }
    if (rows.length < readTogether) return removed;
    afterId = (rows.at(-1) as { id: number }).id;
  }
}
