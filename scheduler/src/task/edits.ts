/**
 * Manual edits of a task's definition. Every process stores the definitions in its code at each start. If an edit simply replaced
 * the definition, the next start would undo it; and if an edited task ignored the code, later changes of the code would have no
 * effect. So for each edited part, `asDefined` holds the value from the code. A new definition from the code replaces these
 * values and all parts that are not edited, and a revert restores them. A part whose two values are equal no longer counts as
 * edited.
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

/** Returns the part of a definition that has this name, or whose option has it; undefined if there is none. */
export const partCalled = (name: string): TaskPart | undefined =>
  optionRow(name)?.part ?? optionRows.find(([, { part }]) => part === name)?.[1].part;

/** Returns the names of the edited parts, sorted, because a definition read from the store has its keys in another order. */
export const editedParts = ({ asDefined = {} }: TaskDefinition): TaskPart[] =>
  Object.keys(asDefined).sort() as TaskPart[];

/**
 * Returns the definition with these options edited. For a retry or misfire policy, fields that are not given stay as they are.
 * @throws TASK_INVALID for an option that cannot be edited, and the errors of `defineTask`
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

/** Returns the code's new definition with the edits of the present one. @param present undefined if there is no task yet */
export function keepEdits(defined: TaskDefinition, present: TaskDefinition | undefined): TaskDefinition {
  if (!present?.asDefined) return defined;
  const names = editedParts(present);
  return over({ ...defined, ...only(present, names) }, only(defined, names));
}

/**
 * Returns the definition to store when a request gives a definition as code would: parts that were edited stay. The definition of a
 * schedule of a task is replaced as a whole, because all of it is given by requests.
 */
export const saidAnew = (said: TaskDefinition, present: TaskDefinition | undefined): TaskDefinition =>
  said.of === undefined ? keepEdits(said, present) : said;

/** Returns the definition without its edits. */
export const beneath = (definition: TaskDefinition): TaskDefinition => reverted(definition, editedParts(definition));

/** Returns the definition as edits over `defined`: each part that differs counts as edited. */
export function laidOver(definition: TaskDefinition, defined: TaskDefinition): TaskDefinition {
  const parts = new Set(
    Object.keys({ ...definition, ...defined, asDefined: null }) as (TaskPart | "name" | "asDefined")[],
  );
  const names = [...parts].filter((part): part is TaskPart => part !== "name" && part !== "asDefined");
  return over(definition, only(beneath(defined), names));
}

/** Returns the definition with these parts reset to the values from the code; other parts stay edited. */
export function reverted(present: TaskDefinition, names: TaskPart[]): TaskDefinition {
  const beneath = only(present.asDefined ?? {}, names);
  return over({ ...present, ...beneath }, present.asDefined ?? {});
}

/** Returns an earlier definition as edits over the present one, so that a restart with the present code does not undo it. */
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
