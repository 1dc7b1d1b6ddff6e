import type { Change } from "../../../base/change.ts";
import { plannedSchedule } from "../../../schedule/slot-rules.ts";
import type { ReplannedAhead } from "../../../task/task-store.ts";
import { audited } from "../access/audit.ts";
import { timeBack } from "../cluster/clock.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { runState } from "../states.ts";
import { statisticsBack } from "../statistics/statistics.ts";
import { edit } from "../tasks/edit.ts";
import { afterEndOf } from "../tasks/new-tasks.ts";
import { lockTask, type Tasks } from "../tasks/read.ts";
import type { TaskRow } from "../tasks/task-rows.ts";

/**
 * Plans tasks again after cluster time went back, at an operator's request: tasks whose next slot is later than the next slot of their
 * schedule from now on. Each task gets a new version in its own transaction. Slots with their own row in the slot table are not planned a
 * second time. Slots that are only part of a recorded range did not run, and are planned. If the call is interrupted, it can be repeated.
 * @returns undefined if cluster time did not go back
 */
export async function replanAhead(tasks: Tasks, change: Change): Promise<ReplannedAhead | undefined> {
  const { database, s } = tasks;
  const now = Math.round(change.nowMs);
  const back = await timeBack(database, now);
  if (!back) return undefined;
  // This is done only once: slots that ran while the clock was ahead are skipped, so the next slot of such a task stays ahead, and another
  // call would find the task again.
  const names = back.replanned ? [] : await namesAhead(tasks, now);
  const reason = change.reason || "cluster time went back";
  let replanned = 0;
  for (const name of names)
    if (await database.persist(() => replanOne(tasks, name, { ...change, reason }))) replanned++;
  const waiting = await waitingAhead(tasks, now);
  await database.persist(() =>
    database.transaction(async (client) => {
      await client.query(`update ${s}.cluster set replanned_ms = greatest(replanned_ms, $1)`, [back.reachedMs]);
      await statisticsBack(client, s, now);
      await audited(client, s, {
        atMs: now,
        who: change.author,
        act: "replan",
        about: "cluster",
        named: "clock",
        before: { reachedMs: back.reachedMs },
        after: { tasks: replanned },
        why: change.reason,
      });
    }),
  );
  return { reachedMs: back.reachedMs, tasks: replanned, waiting };
}

/** Returns the names of tasks whose schedule has a slot, from now on, before the slot that is planned next. */
async function namesAhead({ database, s, calendars, zones }: Tasks, now: number): Promise<string[]> {
  const rows = await database.query<Pick<TaskRow, "name" | "definition" | "next_slot_ms" | "zones_version">>(
    "",
    `select t.name, t.definition, p.next_slot_ms, p.zones_version from ${s}.task t join ${s}.plan p on p.task_id = t.id
     where t.deleted_ms is null and t.version > 0 and not p.paused and (p.next_slot_ms is null or p.next_slot_ms > $1) order by t.id`,
    [now],
  );
  const known = await calendars.of(rows.map(({ definition }) => definition));
  await zones.readFor(rows);
  const isAhead = ({ definition, next_slot_ms: planned, zones_version }: (typeof rows)[number]) => {
    // A task with a fixed delay and no next slot gets its next slot when its unfinished run ends.
    if (planned === null && afterEndOf(definition) !== null) return false;
    const next = plannedSchedule(
      definition,
      known.get(definition.calendar?.name ?? ""),
      [],
      zones.at(zones_version),
    ).next(now);
    return next !== null && (planned === null || next < Number(planned));
  };
  return rows.filter(isAhead).map(({ name }) => name);
}

/** Plans one task again. @returns false if the task was paused or removed meanwhile; a resume plans it again */
const replanOne = (tasks: Tasks, name: string, change: Change): Promise<boolean> =>
  tasks.database.transaction(async (client) => {
    const row = await lockTask(client, tasks.s, name);
    if (row.deleted_ms !== null || row.paused_ms !== null) return false;
    const { definition, definition_text: text, group_id: groupId } = row;
    const calendar = await tasks.calendars.in(client, definition, false);
    await edit(tasks, client, { row, definition, text, groupId, calendar, rangesAhead: "planned", change });
    return true;
  });

/** Counts the unclaimed runs that were created while the clock was ahead and are due after now. Their due times do not change. */
async function waitingAhead({ database, s }: Tasks, now: number): Promise<number> {
  const [row] = await database.query<{ waiting: number }>(
    "",
    `select count(*)::int as waiting from ${s}.run
     where due_ms > $1 and state <> ${runState.claimed} and created_ms > $1 and (source <> ${sourceNumber("slot")} or attempt > 0)`,
    [now],
  );
  return row?.waiting ?? 0;
}
