import type { Change } from "../../../base/change.ts";
import type { ZonesFollowed } from "../../../task/task-record.ts";
import { queryOf } from "../query.ts";
import { edit } from "../tasks/edit.ts";
import { lockTask, type Tasks } from "../tasks/read.ts";

const tasksAtOnce = 500;

/** @see TaskStore.followZones */
export async function followZones(tasks: Tasks, change: Change): Promise<ZonesFollowed> {
  const { database, zones } = tasks;
  await zones.enterUsed(change.nowMs);
  const changed = await zones.bring(change);
  const behind = zones.changedZones();
  let replanned = 0;
  for (;;) {
    const names = behind.length === 0 ? [] : await zones.plannedBefore(queryOf(database), behind, tasksAtOnce);
    for (const name of names) if (await database.persist(() => replanOne(tasks, name, change))) replanned++;
    if (names.length < tasksAtOnce) return { changed, replanned };
  }
}

/** @returns false: it was removed meanwhile, or an edit has planned it by the rules in force */
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
