import { CarillonError } from "../base/errors.ts";
import { shownValue, sortedJson } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { meant } from "../base/nearest.ts";
import { checkRules } from "../schedule/slot-rules.ts";
import { isObject } from "./kinds/kinds.ts";
import { checkName } from "./names.ts";
import {
  type OptionName,
  type OptionRow,
  optionNames,
  optionRow,
  optionRows,
  type TaskDefinition,
  type TaskOptions,
  takesNull,
  usualWritten,
} from "./options.ts";
import { checkTogether } from "./policies.ts";
import { checkScheduleOf } from "./schedule-of.ts";

export type { CommandSpec } from "./command.ts";
export type { TaskDefinition, TaskOptions } from "./options.ts";
export type { MisfirePolicy, OverlapPolicy } from "./policies.ts";

/**
 * Reads a task's options.
 * @throws TASK_INVALID for an invalid name or option, and the errors of an option's own check, such as SCHEDULE_INVALID, DURATION_INVALID
 */
export const defineTask = (name: string, options: TaskOptions = {}): TaskDefinition => readOptions(name, options, true);

/**
 * Reads a task's options for a caller that adds the task's name to errors itself: each message begins with the option.
 * @throws the errors of `defineTask`
 */
export const readTask = (name: string, options: TaskOptions): TaskDefinition => readOptions(name, options, false);

/** @param named true if error messages begin with the task's name; errors of other modules never contain it */
function readOptions(name: string, options: TaskOptions, named: boolean): TaskDefinition {
  checkName("a task's name", name, limits.taskNameLength);
  const about = named ? `task ${name}: ` : "";
  const task = named ? name : undefined;
  const invalid = invalidFor(about);
  if (!isObject(options)) throw noOptions(about, options);
  for (const key of Object.keys(options)) {
    if (optionRow(key) !== undefined) continue;
    throw invalid(
      key,
      `there is no option ${JSON.stringify(key)}${meant(key, optionNames)}`,
      `The options are ${optionNames.join(", ")}.`,
    );
  }
  const parts: Record<string, unknown> = { name };
  for (const [option, row] of optionRows) {
    const kept = readOption(option, row, options[option], task);
    if (kept !== undefined) parts[row.part] = kept;
  }
  const definition = parts as unknown as TaskDefinition;
  checkScheduleOf(definition, options, about);
  checkParts(definition, task);
  return definition;
}

/**
 * Checks whether the options of a definition can be combined in one task. Every edit calls it for the whole definition, because the edited
 * option may conflict with one that was set before.
 * @param task the name with which each message begins; undefined if the caller adds the name
 * @throws TASK_INVALID
 */
export function checkParts(definition: TaskDefinition, task: string | undefined): void {
  checkAfter(definition, invalidFor(task === undefined ? "" : `task ${task}: `));
  checkRules(task, definition, definition.schedule);
  checkTogether(task, definition);
}

const invalidFor = (about: string) => (path: string, what: string, hint: string) =>
  new CarillonError("TASK_INVALID", `${about}${what}`, { hint, path });

const noOptions = (about: string, given: unknown) =>
  new CarillonError("TASK_INVALID", `${about}its options cannot be ${shownValue(given)}`, {
    hint: "Give an object, also an empty one. In code it stands before the handler: task(name, {}, handler).",
  });

/** Checks the type of `options`, for code that reads single options before `defineTask`. @throws TASK_INVALID if it is not an object */
export function requireOptions(name: string, options: unknown): void {
  if (!isObject(options)) throw noOptions(`task ${name}: `, options);
}

/** Reads one option. @returns the stored value; undefined if the definition leaves the part out */
function readOption(option: OptionName, row: OptionRow, given: unknown, task: string | undefined): unknown {
  const { kind, usual, isAbsent } = row;
  if (given === undefined || (given === null && takesNull(row))) {
    if (isAbsent) return undefined;
    return usual === null ? null : kind.read(usual, { task, path: option });
  }
  const kept = kind.read(given, { task, path: option });
  const isUsual = isAbsent && (kept === undefined || usualText(option, row) === sortedJson(kind.write(kept)));
  return isUsual ? undefined : kept;
}

const usualTexts = new Map<OptionName, string>();
function usualText(option: OptionName, row: OptionRow): string {
  const known = usualTexts.get(option);
  if (known !== undefined) return known;
  const text = row.usual === null ? "" : sortedJson(usualWritten(row));
  usualTexts.set(option, text);
  return text;
}

function checkAfter({ name, schedule, after }: TaskDefinition, invalid: ReturnType<typeof invalidFor>): void {
  if (!after) return;
  if (schedule.type !== "manual")
    throw invalid(
      "after",
      "it has a schedule and comes after another task",
      "Leave out one of the two, or make it two tasks.",
    );
  if (after.tasks.includes(name))
    throw invalid("after", "it cannot come after itself", "To go on as another run: run.continueAs.");
}

/** Returns the definition as text with sorted keys, so that equal definitions have equal texts. */
export const definitionText = (definition: TaskDefinition): string => sortedJson(definition);
