/**
 * Tasks in the form of a file: the options of the library with durations as strings and the schedule in the fields `cron`, `every`,
 * `rrule` or `at`. Defaults are left out, so a file shows only what differs from them.
 */
import { CarillonError, within } from "../base/errors.ts";
import { type Json, sortedJson } from "../base/json.ts";
import { isObject } from "./kinds/kinds.ts";
import { readSchedule } from "./kinds/schedule.ts";
import { optionRow, optionRows, type TaskDefinition, type TaskOptions, takesNull } from "./options.ts";
import { isOwnOption, withOwn } from "./schedule-of.ts";
import { defineTask, readTask } from "./task.ts";

export type WrittenTask = { [option: string]: Json };

/**
 * Reads a task from a file. Errors do not contain the task's name, because the reader of the file adds it.
 * @throws the errors of `defineTask` and of `readSchedule`
 */
export function readWritten(name: string, written: unknown): TaskDefinition {
  if (!isObject(written))
    throw invalid("", "its options must be an object", 'For example { schedule: "0 2 * * *", timeout: "1h" }.');
  for (const [option, value] of Object.entries(written)) {
    const row = optionRow(option);
    if (value === null && row && !takesNull(row))
      throw invalid(option, `${option} is empty`, "Give it a value, or leave it out.");
  }
  return readTask(name, readGiven(written));
}

/** Reads a task's options from a request, in which the schedule may also have the form of a file. @throws the errors of `readSchedule` */
export const readGiven = (options: { schedule?: unknown }): TaskOptions =>
  (options.schedule === undefined
    ? options
    : { ...options, schedule: within("schedule", () => readSchedule(options.schedule)) }) as TaskOptions;

/**
 * Returns only the options that differ from `defineTask`'s defaults; for a schedule of a task, only its own options.
 * `readWritten` of the result gives the definition without edits.
 */
export function writtenTask(definition: TaskDefinition): WrittenTask {
  const plain = whole(defineTask(definition.name));
  const written = whole(definition);
  const isSaid = (option: string) => definition.of === undefined || option === "of" || isOwnOption(option);
  return Object.fromEntries(
    Object.entries(written).filter(
      ([option, value]) => isSaid(option) && sortedJson(value) !== sortedJson(plain[option]),
    ),
  );
}

/** Returns a schedule's definition without the parts that come from its task; any other definition unchanged. */
export function asSaid(definition: TaskDefinition): TaskDefinition {
  const { name, of, asDefined } = definition;
  if (of === undefined) return definition;
  return { ...withOwn(defineTask(name), definition), of, ...(asDefined && { asDefined }) };
}

/**
 * Returns what `writtenTask` returns, in the form of the library's options: `defineTask` of it gives the definition without
 * edits.
 */
export const givenOptions = (definition: TaskDefinition): TaskOptions => ({
  ...(writtenTask(definition) as TaskOptions),
  schedule: definition.schedule,
});

/** Returns the options of the definition in the form of a file, including those defaults that the definition contains. */
function whole(definition: TaskDefinition): WrittenTask {
  const written: WrittenTask = {};
  for (const [option, { part, kind, nullable }] of optionRows) {
    const kept = definition[part];
    if (kept === undefined || (kept === null && !nullable)) continue;
    written[option] = kept === null ? null : kind.write(kept);
  }
  return written;
}

export interface FieldChange {
  /** The path of the field, for example "retry.attempts". */
  path: string;
  /** The former value; undefined if the field had its default. */
  was: Json | undefined;
  is: Json | undefined;
}

/** Returns the differences between two definitions, field by field, in the form of a file. */
export function fieldChanges(before: TaskDefinition, after: TaskDefinition): FieldChange[] {
  const [a, b] = [whole(before), whole(after)];
  return changesIn("", a, b);
}

/** Returns the differences of two values, each with its path. */
export function changesIn(path: string, a: Json | undefined, b: Json | undefined): FieldChange[] {
  if (sortedJson(a) === sortedJson(b)) return [];
  // Payloads, bodies and lists are compared as a whole, and so are schedules of different kinds.
  const opened = isObject(a) && isObject(b) && !/(?:^slotPayload|\.body)$/.test(path) && !otherKind(path, a, b);
  if (!opened) return [{ path, was: a, is: b }];
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return names.flatMap((name) => changesIn(path === "" ? name : `${path}.${name}`, a[name] as Json, b[name] as Json));
}

const otherKind = (path: string, a: object, b: object) =>
  path === "schedule" && Object.keys(a)[0] !== Object.keys(b)[0];

const invalid = (path: string, what: string, hint: string) => new CarillonError("TASK_INVALID", what, { hint, path });
