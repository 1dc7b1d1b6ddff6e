/**
 * An edit by hand lies over what defines a task. A definition in code is stored at every start of every process that has
 * it, so an edit that simply replaced it would be gone with the next start; and code that gave way altogether would
 * change nothing any more. So each edited part keeps what the definer says of it beneath (`asDefined`), a new definition
 * replaces that and all the other parts, and a revert puts it back. A part on which both agree is edited no more.
 */
import { CarillonError } from "../base/errors.ts";
import { sortedJson } from "../base/json.ts";
import {
  absentParts,
  type EditedParts,
  type OptionName,
  type OptionRow,
  optionRow,
  optionRows,
  type TaskDefinition,
  type TaskOptions,
  type TaskPart,
  taskOptions,
} from "./options.ts";
import { checkEditOf } from "./schedule-of.ts";
import { checkParts, defineTask } from "./task.ts";

export type { EditedParts, TaskPart } from "./options.ts";

/** A part by the name of its option, or by its own. */
export const partCalled = (name: string): TaskPart | undefined =>
  optionRow(name)?.part ?? optionRows.find(([, { part }]) => part === name)?.[1].part;

/** In one order, whether the definition was just made or read from a store, which keeps keys in an order of its own. */
export const editedParts = ({ asDefined = {} }: TaskDefinition): TaskPart[] =>
  Object.keys(asDefined).sort() as TaskPart[];

/**
 * The definition with these options edited; of a retry or misfire policy what is not named stays as it is.
 * @throws what `defineTask` throws
 */
export function edited(present: TaskDefinition, options: TaskOptions): TaskDefinition {
  const names = Object.keys(options).filter((option) => optionRow(option) !== undefined) as OptionName[];
  const fixed = names.find((option) => !taskOptions[option].editable);
  if (fixed !== undefined)
    throw new CarillonError("TASK_INVALID", `task ${present.name}: ${fixed} cannot be edited`, {
      hint: "It is what the task was defined with. Define another task.",
      path: fixed,
    });
  checkEditOf(present, names);
  const merged = names.flatMap((option) => {
    const { kind, part } = taskOptions[option] as OptionRow;
    const kept = present[part];
    const given = options[option];
    return kind.merged && kept != null && given !== undefined ? [[option, kind.merged(kept, given)]] : [];
  });
  const whole = defineTask(present.name, { ...options, ...Object.fromEntries(merged) });
  const parts = names.map((option) => taskOptions[option].part);
  const beneath = Object.fromEntries(parts.map((part) => [part, present[part] ?? null])) as EditedParts;
  const made = over({ ...present, ...only(whole, parts) }, { ...beneath, ...present.asDefined });
  checkParts(made, made.name);
  return made;
}

/** What a definer's new definition makes of a task that may have been edited. @param present undefined: there is none */
export function keepEdits(defined: TaskDefinition, present: TaskDefinition | undefined): TaskDefinition {
  if (!present?.asDefined) return defined;
  const names = editedParts(present);
  return over({ ...defined, ...only(present, names) }, only(defined, names));
}

/**
 * What becomes of a task that is said anew as code would say it: parts that were edited by hand stay. Not of a schedule: whoever gives it
 * says by hand when its runs are due.
 */
export const saidAnew = (said: TaskDefinition, present: TaskDefinition | undefined): TaskDefinition =>
  said.of === undefined ? keepEdits(said, present) : said;

/** What its definer says: the definition with no part edited. */
export const beneath = (definition: TaskDefinition): TaskDefinition => reverted(definition, editedParts(definition));

/** The definition as one whose definer says `defined`: whatever it says otherwise counts as edited by hand. */
export function laidOver(definition: TaskDefinition, defined: TaskDefinition): TaskDefinition {
  const parts = new Set(
    Object.keys({ ...definition, ...defined, asDefined: null }) as (TaskPart | "name" | "asDefined")[],
  );
  const names = [...parts].filter((part): part is TaskPart => part !== "name" && part !== "asDefined");
  return over(definition, only(beneath(defined), names));
}

/** The definition with these parts as its definer says; others stay edited. */
export function reverted(present: TaskDefinition, names: TaskPart[]): TaskDefinition {
  const beneath = only(present.asDefined ?? {}, names);
  return over({ ...present, ...beneath }, present.asDefined ?? {});
}

/** The definition as it was once, laid over what defines it now: code that starts again does not undo it. */
export function restored(present: TaskDefinition, once: TaskDefinition): TaskDefinition {
  const { asDefined: _, ...parts } = once;
  const names = [...new Set([...Object.keys(parts), ...absentParts])] as TaskPart[];
  const differing = names.filter((part) => sortedJson(once[part] ?? null) !== sortedJson(present[part] ?? null));
  const beneath = Object.fromEntries(differing.map((part) => [part, present[part] ?? null])) as EditedParts;
  return over({ ...present, ...only(once, differing) }, { ...beneath, ...present.asDefined });
}

function over(definition: TaskDefinition, beneath: EditedParts): TaskDefinition {
  const { asDefined: _, ...rest } = definition;
  for (const part of absentParts) if (rest[part] === null) delete rest[part];
  const differing = Object.entries(beneath).filter(
    ([part, value]) => sortedJson(value ?? null) !== sortedJson(rest[part as TaskPart] ?? null),
  );
  return differing.length === 0 ? rest : { ...rest, asDefined: Object.fromEntries(differing) };
}

const only = (from: EditedParts, names: TaskPart[]): EditedParts =>
  Object.fromEntries(
    names
      .filter((name) => name in from || absentParts.has(name))
      .map((name) => [name, absentParts.has(name) ? (from[name] ?? null) : from[name]]),
  );
