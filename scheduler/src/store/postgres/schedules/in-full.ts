import type { SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import { madeOf } from "../../../task/schedule-of.ts";
import { checkParts, type TaskDefinition } from "../../../task/task.ts";
import { type Query, queryIn, queryOf } from "../query.ts";
import type { Tasks } from "../tasks/read.ts";

interface InFull {
  definition: TaskDefinition;
  /** For a schedule, the version of its task from which the definition is made; otherwise null. */
  ofVersion: number | null;
}

/**
 * Returns the definition with all settings of its task if it is a schedule; otherwise unchanged. In a transaction the task is locked, so
 * that it is changed or removed only before or after this transaction.
 * @param present the stored definition; undefined if it is new
 * @throws TASK_INVALID, TASK_UNKNOWN
 */
export async function inFull(
  { database, s }: Pick<Tasks, "database" | "s">,
  given: TaskDefinition,
  present: TaskDefinition | undefined,
  client?: SqlClient,
): Promise<InFull> {
  const { of } = given;
  if (present && (present.of ?? null) !== (of ?? null)) throw otherKind(given, present);
  if (of === undefined) return { definition: given, ofVersion: null };
  const task = client
    ? await taskOf(queryIn(client), s, { ...given, of }, "for share")
    : await taskOf(queryOf(database), s, { ...given, of }, "");
  return { definition: madeInFull(given, task.definition), ofVersion: task.version };
}

/** Returns the task of which this definition is a schedule. @throws TASK_INVALID, TASK_UNKNOWN */
export async function taskOf(
  query: Query,
  s: string,
  { name, of }: { name: string; of: string },
  locking: "for share" | "",
): Promise<{ definition: TaskDefinition; version: number }> {
  const [task] = await query<{ definition: TaskDefinition; version: number }>(
    "",
    `select definition, version from ${s}.task where name = $1 and deleted_ms is null and version > 0 ${locking}`,
    [of],
  );
  if (!task)
    throw new CarillonError(
      "TASK_UNKNOWN",
      `task ${name}: it is a schedule of ${JSON.stringify(of)}, which is no task`,
      {
        hint: "Define that one first.",
        path: "of",
      },
    );
  if (task.definition.of !== undefined)
    throw new CarillonError("TASK_INVALID", `task ${name}: ${of} is a schedule itself, of ${task.definition.of}`, {
      hint: `Make it a schedule of ${task.definition.of}.`,
      path: "of",
    });
  return task;
}

/** Returns a schedule's definition with the settings of its task. @throws TASK_INVALID if the task cannot have such a schedule */
export function madeInFull(given: TaskDefinition, task: TaskDefinition): TaskDefinition {
  const definition = madeOf(given, task);
  checkParts(definition, given.name);
  return definition;
}

const otherKind = ({ name, of }: TaskDefinition, present: TaskDefinition) => {
  const is = present.of === undefined ? "it is a task of its own" : `it is a schedule of ${present.of}`;
  const would = of === undefined ? "a task of its own" : `a schedule of ${of}`;
  return new CarillonError("TASK_INVALID", `task ${name}: ${is}, and cannot become ${would}`, {
    hint: "Choose another name, or remove it first.",
    path: "of",
  });
};

/** Records, in the transaction that stores a schedule's definition, its task and the version of that task. */
export async function markSchedule(
  client: SqlClient,
  s: string,
  taskId: number,
  { of, ofVersion }: { of: string | undefined; ofVersion: number | null },
): Promise<void> {
  if (of === undefined) return;
  await client.query(`update ${s}.task set of_name = $2, of_version = $3 where id = $1`, [taskId, of, ofVersion]);
}
