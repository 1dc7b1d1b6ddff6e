import type { Change, SqlClient } from "../../../base/change.ts";
import { definitionText, type TaskDefinition } from "../../../task/task.ts";
import type { SchedulesSaved } from "../../../task/task-record.ts";
import { sideBySide } from "../../side-by-side.ts";
import { queryIn } from "../query.ts";
import { save } from "../tasks/define.ts";
import { groupNumberIn } from "../tasks/groups.ts";
import { createTasks } from "../tasks/new-tasks.ts";
import type { Tasks } from "../tasks/read.ts";
import { madeInFull, taskOf } from "./in-full.ts";

/** How many schedules are written in parallel, each in its own transaction. */
const writesAtOnce = 4;

interface Present {
  name: string;
  definition_text: string;
  removed: boolean;
}

/** @see TaskStore.saveSchedules */
export async function saveSchedules(
  tasks: Tasks,
  of: string,
  given: readonly TaskDefinition[],
  change: Change,
  client?: SqlClient,
): Promise<SchedulesSaved> {
  const { database, s, zones, counted } = tasks;
  const [first] = given;
  if (!first) return { created: [], changed: [] };
  await zones.enter(given, [], change.nowMs);
  const { created, left, present } = await database.within(client, async (inside) => {
    const query = queryIn(inside);
    const task = await taskOf(query, s, { name: first.name, of }, "for share");
    const rows = await query<Present>(
      "",
      `select name, definition_text, deleted_ms is not null as removed from ${s}.task where name = any($1)`,
      [given.map(({ name }) => name)],
    );
    const present = new Map(rows.map((row) => [row.name, row]));
    const made = given.map((definition) => madeInFull(definition, task.definition));
    // A schedule with a calendar is stored separately, in a transaction that prevents the removal of the calendar.
    const absent = made.filter(({ name, calendar }) => !present.has(name) && !calendar);
    const groupId = await groupNumberIn(tasks, inside, task.definition.group);
    const records =
      absent.length === 0
        ? []
        : await createTasks({ query, s }, absent, {
            groupIdOf: () => groupId,
            change,
            releaseId: null,
            schedulesOf: { name: of, version: task.version },
            zones,
            isLast: client === undefined,
          });
    const created = new Set(records.map(({ name }) => name));
    const isSame = (definition: TaskDefinition) => {
      const row = present.get(definition.name);
      return row?.removed === false && row.definition_text === definitionText(definition);
    };
    return { created, present, left: made.filter((one) => !created.has(one.name) && !isSame(one)) };
  });
  await counted(created.size);
  const saved: SchedulesSaved = { created: [...created], changed: [] };
  await sideBySide(left, client ? 1 : writesAtOnce, async (definition) => {
    const { name } = definition;
    const { changed } = await save(tasks, definition, null, change, client);
    if (changed) (present.get(name)?.removed === false ? saved.changed : saved.created).push(name);
  });
  return saved;
}
