/**
 * A schedule of a task is itself stored as a task, called `TASK:SCHEDULE`, with slots, a pause, a history and versions like any other. It
 * defines the times of its slots and their payload. All other parts come from the task to which it belongs, whose handler executes its
 * runs. Its policies count only its own runs. When that task changes, the leader updates the definitions of its schedules; when that task
 * is removed, its schedules are removed too.
 */
import { CarillonError } from "../base/errors.ts";
import type { OptionName, TaskDefinition, TaskOptions, TaskPart } from "./options.ts";

/** The options that a schedule defines itself. */
export const scheduleOptions = [
  "description",
  "schedule",
  "slotPayload",
  "misfire",
  "calendar",
  "blackout",
  "atEnd",
] as const satisfies OptionName[];

export type ScheduleOptions = Pick<TaskOptions, (typeof scheduleOptions)[number]>;

const ownParts: readonly TaskPart[] = scheduleOptions;

export const isOwnOption = (option: string): boolean => (scheduleOptions as readonly string[]).includes(option);

export const nameOfSchedule = (task: string, schedule: string): string => `${task}:${schedule}`;

/** Returns the name of the task whose handler executes the runs. Workers and secrets use this name. */
export const handlerTask = ({ name, of }: Pick<TaskDefinition, "name" | "of">): string => of ?? name;

/** Returns the schedule's name within its task; null if the task is not a schedule. */
export const scheduleCalled = ({ name, of }: Pick<TaskDefinition, "name" | "of">): string | null =>
  of === undefined ? null : name.slice(of.length + 1);

/**
 * Checks the options of a schedule of a task; any other task passes.
 * @param given all the options that were given
 * @param about the text with which each message begins
 * @throws TASK_INVALID
 */
export function checkScheduleOf({ name, of, schedule }: TaskDefinition, given: object, about: string): void {
  if (of === undefined) return;
  if (!name.startsWith(`${of}:`) || name === `${of}:`)
    throw new CarillonError("TASK_INVALID", `${about}it is called as no schedule of ${of} is`, {
      hint: `Call it ${of}:NAME.`,
      path: "of",
    });
  const foreign = Object.entries(given).find(
    ([option, value]) => value !== undefined && option !== "of" && !isOwnOption(option),
  );
  if (foreign) throw saidByTask(foreign[0], of, about);
  if (schedule.type === "manual")
    throw new CarillonError("TASK_INVALID", `${about}it has no schedule`, {
      hint: "Say when its runs are due: a cron, an interval, or one moment.",
      path: "schedule",
    });
}

const saidByTask = (option: string, of: string, about: string) =>
  new CarillonError("TASK_INVALID", `${about}${option} is said by task ${of}, for all of its schedules`, {
    hint: `A schedule has ${scheduleOptions.join(", ")} of its own. For other policies define another task.`,
    path: option,
  });

/** @throws TASK_INVALID if an edit of a schedule contains an option that comes from its task */
export function checkEditOf({ name, of }: TaskDefinition, options: readonly string[]): void {
  const foreign = of === undefined ? undefined : options.find((option) => option !== "of" && !isOwnOption(option));
  if (foreign !== undefined && of !== undefined) throw saidByTask(foreign, of, `task ${name}: `);
}

/** Returns a schedule's complete definition: its own parts, and all other parts from its task's present definition. */
export function madeOf(own: TaskDefinition, task: TaskDefinition): TaskDefinition {
  const { asDefined: _, after: _after, ...rest } = task;
  const made = withOwn(rest, own);
  const edited = Object.entries(own.asDefined ?? {}).filter(([part]) => ownParts.includes(part as TaskPart));
  return { ...made, of: task.name, ...(edited.length > 0 && { asDefined: Object.fromEntries(edited) }) };
}

/** Returns the definition with the schedule's own parts from `own`. A part that `own` lacks is left out. */
export function withOwn(definition: TaskDefinition, own: TaskDefinition): TaskDefinition {
  const made: Record<string, unknown> = { ...definition, name: own.name };
  for (const part of ownParts) {
    if (own[part] === undefined) delete made[part];
    else made[part] = own[part];
  }
  return made as unknown as TaskDefinition;
}
