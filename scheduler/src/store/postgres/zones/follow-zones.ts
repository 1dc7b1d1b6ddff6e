import type { Change } from "../../../base/change.ts";
import { isCarillonError, messageOf } from "../../../base/errors.ts";
import type { ZonesFollowed } from "../../../task/task-record.ts";
import { queryOf } from "../query.ts";
import { edit } from "../tasks/edit.ts";
import { lockTask, type Tasks } from "../tasks/read.ts";

const tasksAtOnce = 500;

/** @see TaskStore.followZones */
export async function followZones(tasks: Tasks, change: Change): Promise<ZonesFollowed> {
  const { database, zones } = tasks;
  await zones.enterUsed(change.nowMs);
  const followed: ZonesFollowed = { changed: await zones.bring(change), replanned: 0, left: [] };
  const changes = zones.changedZones();
  for (let afterId = 0; changes.length > 0; ) {
    const behind = await zones.plannedBefore(queryOf(database), changes, afterId, tasksAtOnce);
    for (const { id, name } of behind) {
      afterId = id;
      try {
        if (await database.persist(() => replanOne(tasks, name, change))) followed.replanned++;
      } catch (error) {
        // If this process cannot plan one task, the others are still planned again.
        if (!isCarillonError(error) || error.code.startsWith("STORE_")) throw error;
        followed.left.push({ task: name, error: messageOf(error) });
      }
    }
    if (behind.length < tasksAtOnce) break;
  }
  return followed;
}

/** Plans one task again. @returns false if the task was removed meanwhile, or an edit has already planned it by the newest rules */
const replanOne = (tasks: Tasks, name: string, change: Change): Promise<boolean> =>
  tasks.database.transaction(async (client) => {
    const row = await lockTask(client, tasks.s, name);
    if (row.deleted_ms !== null || row.zones_version >= tasks.zones.version) return false;
    const { definition, definition_text: text, group_id: groupId } = row;
    const calendar = await tasks.calendars.in(client, definition, false);
    const reason = change.reason || "its time zone has other rules";
    await edit(tasks, client, { row, definition, text, groupId, calendar, change: { ...change, reason } });
    return true;
  });
