import type { Change } from "../../../base/change.ts";
import { isCarillonError, messageOf } from "../../../base/errors.ts";
import { madeOf } from "../../../task/schedule-of.ts";
import { definitionText, type TaskDefinition } from "../../../task/task.ts";
import type { SchedulesFollowed } from "../../../task/task-record.ts";
import type { Removed } from "../../../task/task-store.ts";
import { sideBySide } from "../../side-by-side.ts";
import { write } from "../tasks/define.ts";
import { type Tasks, unknownTask } from "../tasks/read.ts";
import { remove } from "../tasks/stop.ts";

/** Removes a task and its schedules. If the process ends before all schedules are removed, the leader removes the others. */
export async function removeWhole(
  tasks: Tasks,
  name: string,
  change: Change,
  expectedVersion: number | null,
): Promise<Removed> {
  const { taskId, recalled, ended } = await remove(tasks, name, change, { expectedVersion });
  const { recalled: ofSchedules, ended: withThem } = await followTasks(tasks, [taskId], change);
  return { recalled: [...recalled, ...ofSchedules], ended: ended + withThem };
}

const readTogether = 500;
/** How many schedules are written in parallel, each in its own transaction. */
const writesAtOnce = 4;

interface Behind {
  id: number;
  name: string;
  version: number;
  definition: TaskDefinition;
  definition_text: string;
  task: TaskDefinition;
  task_version: number;
  task_removed: boolean;
}

/** @see TaskStore.followTasks */
export async function followTasks(
  tasks: Tasks,
  taskIds: readonly number[] | null,
  change: Change,
): Promise<SchedulesFollowed> {
  const { database, s } = tasks;
  const followed: SchedulesFollowed = { changed: 0, removed: 0, recalled: [], ended: 0, left: [] };
  for (let afterId = 0; ; ) {
    const behind = await database.query<Behind>(
      taskIds ? "schedules-behind-these" : "schedules-behind",
      `select c.id, c.name, c.version, c.definition, c.definition_text, t.definition as task, t.version as task_version,
              t.deleted_ms is not null as task_removed
       from ${s}.task t join ${s}.task c on c.of_name = t.name and c.deleted_ms is null
       where c.of_name is not null and c.id > $1 and (t.deleted_ms is not null or c.of_version is distinct from t.version)
             ${taskIds ? "and t.id = any($2)" : ""}
       order by c.id limit ${readTogether}`,
      taskIds ? [afterId, taskIds] : [afterId],
    );
    const same: Behind[] = [];
    const changed = behind.filter((one) => {
      if (one.task_removed || definitionText(madeOf(one.definition, one.task)) !== one.definition_text) return true;
      same.push(one);
      return false;
    });
    await markSame(tasks, same);
    await sideBySide(changed, writesAtOnce, (one) => followOne(tasks, one, change, followed));
    if (behind.length < readTogether) return followed;
    afterId = (behind.at(-1) as Behind).id;
  }
}

/** Marks schedules as up to date that the change of their task does not affect. */
async function markSame({ database, s }: Tasks, same: readonly Behind[]): Promise<void> {
  if (same.length === 0) return;
  await database.query(
    "schedules-same",
    `update ${s}.task c set of_version = g.of_version from unnest($1::int[], $2::int[], $3::int[]) as g (id, version, of_version)
     where c.id = g.id and c.version = g.version`,
    [same.map(({ id }) => id), same.map(({ version }) => version), same.map(({ task_version }) => task_version)],
  );
}

async function followOne(tasks: Tasks, one: Behind, change: Change, followed: SchedulesFollowed): Promise<void> {
  const { name, task_removed, task } = one;
  try {
    if (task_removed) {
      const reason = `task ${task.name} was removed`;
      const { recalled, ended } = await remove(tasks, name, { ...change, reason });
      followed.removed++;
      followed.ended += ended;
      followed.recalled.push(...recalled);
      return;
    }
    const reason = `task ${task.name} was changed`;
    // The schedule's own settings stay. `write` takes the other settings from the task.
    const make = async (present: TaskDefinition | undefined) => {
      if (!present) throw unknownTask(name);
      return present;
    };
    const { changed } = await write(tasks, { name, make, expectedVersion: null, change: { ...change, reason } });
    if (changed) followed.changed++;
  } catch (error) {
    // The schedule or its task was removed meanwhile, which the next call handles.
    if (isCarillonError(error, "TASK_UNKNOWN")) return;
    // If a schedule cannot be made from its changed task, it stays as it was, and the other schedules are still updated.
    if (!isCarillonError(error) || error.code.startsWith("STORE_")) throw error;
    followed.left.push({ task: name, error: messageOf(error) });
  }
}
