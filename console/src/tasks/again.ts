/** Restores a task that was removed a moment ago. */
import type { TaskDefinition } from "carillon/task";
import type { Given } from "../api/call.ts";
import type { Task } from "./answers.ts";

/**
 * True if the API can restore the removed task exactly. It cannot in these cases: a paused task would fire before it could be
 * paused again; the API cannot restore which parts were edited by hand, or which files define the task; the task's named schedules
 * were removed with it.
 */
export const mayComeAgain = ({ paused, edited, bundle, schedules }: Task): boolean =>
  paused === null && edited.length === 0 && bundle === null && schedules === 0;

/** Converts the task's definition into options for `createTask`. The code is loaded on demand, because it is rarely needed. */
export async function optionsAgain(task: Task): Promise<Given<"createTask">["options"]> {
  const { givenOptions } = await import("carillon/task");
  return givenOptions(task.definition as unknown as TaskDefinition) as Given<"createTask">["options"];
}
