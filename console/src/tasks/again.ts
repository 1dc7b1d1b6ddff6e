/** Restores a task that was removed a moment ago. */
import type { TaskDefinition } from "carillon/task";
import type { Given } from "../api/call.ts";
import type { Task } from "./answers.ts";

/**
 * True if the API can make the task again as it was. A paused task would fire before it could be paused; the API cannot restore
 * which parts were edited by hand, nor which files define the task; the task's schedules are gone with it.
 */
export const mayComeAgain = ({ paused, edited, bundle, schedules }: Task): boolean =>
  paused === null && edited.length === 0 && bundle === null && schedules === 0;

/** Its definition as the options that make it. Fetched when it is needed: hardly ever. */
export async function optionsAgain(task: Task): Promise<Given<"createTask">["options"]> {
  const { givenOptions } = await import("carillon/task");
  return givenOptions(task.definition as unknown as TaskDefinition) as Given<"createTask">["options"];
}
