/**
 * Kinds of values that a task's options may have. A kind reads a given value, and writes the stored value in the form of a file. Its shape
 * is plain data, from which the HTTP contract, the reference table, the help of the command line and the fields of the console are
 * generated.
 */
import { type Duration, formatDuration, parseDuration } from "../../base/duration.ts";
import { CarillonError, pathTo, within } from "../../base/errors.ts";
import { type Json, jsonText, shownValue, sortedJson } from "../../base/json.ts";
import { meant } from "../../base/nearest.ts";
import { checkName } from "../names.ts";

/** The position of a value in the options, for error messages. */
export interface Place {
  /** The task's name, with which error messages begin; undefined if the caller adds the name itself. */
  task: string | undefined;
  /** The path of the value, for example "retry.attempts". */
  path: string;
}

export interface FieldShape {
  shape: Shape;
  required: boolean;
  description: string;
  /** The default in the form of a file, for a field that is left out; undefined if there is none. */
  usual: Json | undefined;
}

export type Shape =
  | { is: "duration" }
  | { is: "count"; least: number; most: number }
  /** A number from 0 to 1. */
  | { is: "share" }
  | { is: "flag" }
  | { is: "choice"; values: readonly string[] }
  /** `longest`: the greatest length in characters; null if the kind has none. `isName`: true if the text must not be empty. */
  | { is: "text"; longest: number | null; isName: boolean }
  /** An object whose values are strings. */
  | { is: "texts" }
  | { is: "json" }
  /** A JSON Schema. */
  | { is: "schema" }
  | { is: "schedule" }
  | { is: "list"; of: Shape; most: number }
  /** `mergedByEdits`: true if an edit may leave out fields, even required ones. */
  | { is: "object"; fields: Record<string, FieldShape>; mergedByEdits?: true }
  | { is: "either"; of: readonly Shape[] };

export interface Kind<Kept = unknown> {
  readonly shape: Shape;
  /** A sentence that says which values are allowed, for errors. */
  readonly hint: string;
  /** Checks a given value and returns it in the stored form. @throws TASK_INVALID or the errors of the value's own check, with the path */
  read(given: unknown, place: Place): Kept;
  write(kept: Kept): Json;
  /** For an edit that gives only some fields: returns the given value completed with the stored fields. */
  merged?(kept: Kept, given: unknown): unknown;
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the beginning of an error message, for example "task settle: retry.attempts". */
export const says = ({ task, path }: Place): string =>
  task === undefined ? path : path === "" ? `task ${task}` : `task ${task}: ${path}`;

export const inner = ({ task, path }: Place, name: string): Place => ({ task, path: pathTo(path, name) });

/** Returns an error about a value. @param what the text after the path, for example " cannot be 5" */
export const wrong = (place: Place, what: string, hint: string): CarillonError =>
  new CarillonError("TASK_INVALID", `${says(place)}${what}`, { hint, path: place.path });

const cannotBe = (place: Place, given: unknown, hint: string) => wrong(place, ` cannot be ${shownValue(given)}`, hint);

/**
 * Returns the error for an object that has an unknown property.
 * @param place the position of the object
 * @param name the unknown property
 * @param names the properties that the object may have
 */
export const stranger = (place: Place, name: string, names: readonly string[]): CarillonError =>
  new CarillonError("TASK_INVALID", `${says(place)} has no ${JSON.stringify(name)}${meant(name, names)}`, {
    hint: `It has ${names.join(", ")}.`,
    path: pathTo(place.path, name),
  });

const durationHint = 'Give milliseconds or a text such as "250ms", "15m", "1h 30m".';

export const yearMs = 366 * 86_400_000;

/** A duration, stored as milliseconds. */
export const duration = ({ leastMs = 1, aYearAtMost = false } = {}): Kind<number> => ({
  shape: { is: "duration" },
  hint: durationHint,
  read(given, place) {
    const ms = within(place.path, () => parseDuration(given as Duration, says(place), leastMs));
    if (aYearAtMost && ms > yearMs) throw wrong(place, " is longer than a year", "Give at most 366 days.");
    return ms;
  },
  write: formatDuration,
});

export const count = (least: number, most: number): Kind<number> => ({
  shape: { is: "count", least, most },
  hint: `Give a whole number from ${least} to ${most}.`,
  read(given, place) {
    if (Number.isInteger(given) && (given as number) >= least && (given as number) <= most) return given as number;
    throw cannotBe(place, given, this.hint);
  },
  write: (kept) => kept,
});

export const share: Kind<number> = {
  shape: { is: "share" },
  hint: "Give 0 to 1.",
  read(given, place) {
    if (typeof given === "number" && given >= 0 && given <= 1) return given;
    throw cannotBe(place, given, this.hint);
  },
  write: (kept) => kept,
};

export const flag: Kind<boolean> = {
  shape: { is: "flag" },
  hint: "Give true or false.",
  read(given, place) {
    if (typeof given === "boolean") return given;
    throw cannotBe(place, given, this.hint);
  },
  write: (kept) => kept,
};

export const choice = <const Value extends string>(values: readonly Value[]): Kind<Value> => ({
  shape: { is: "choice", values },
  hint: `Give one of ${values.join(", ")}.`,
  read(given, place) {
    if (values.includes(given as Value)) return given as Value;
    throw cannotBe(place, given, this.hint);
  },
  write: (kept) => kept,
});

export const text = (longest: number | null = null): Kind<string> => ({
  shape: { is: "text", longest, isName: false },
  hint: longest === null ? "Give a text." : `Give a text of at most ${longest} characters.`,
  read(given, place) {
    if (typeof given !== "string") throw wrong(place, " must be a text", `It is a ${typeof given}.`);
    if (longest === null) return given;
    if (given.length > longest) throw wrong(place, ` has ${given.length} characters`, this.hint);
    if (given.includes("\0")) throw wrong(place, " has a NUL in it", this.hint);
    return given;
  },
  write: (kept) => kept,
});

/** A name, for example of a group. */
export const name = (longest: number): Kind<string> => ({
  shape: { is: "text", longest, isName: true },
  hint: `Use 1 to ${longest} letters, digits and . _ : / @ -, the first a letter or digit.`,
  read(given, place) {
    within(place.path, () => checkName(says(place), given, longest));
    return given as string;
  },
  write: (kept) => kept,
});

/** Names that are refused. The schemas of the HTTP API cannot express "__proto__", and refuse it too. */
const noNames = new Set(["", "__proto__"]);

/** An object whose values are strings. @param most the greatest number of names @param example an example for the hint */
export const texts = (most: number, example: string): Kind<Record<string, string>> => ({
  shape: { is: "texts" },
  hint: `For example ${example}, at most ${most}.`,
  read(given, place) {
    const entries = isObject(given) ? Object.entries(given) : undefined;
    if (
      !entries ||
      entries.length > most ||
      !entries.every(([key, value]) => !noNames.has(key) && typeof value === "string")
    )
      throw wrong(place, " must hold texts", this.hint);
    return Object.fromEntries(entries) as Record<string, string>;
  },
  write: (kept) => kept,
});

/** Any JSON value; undefined counts as null. */
export const json: Kind<Json> = {
  shape: { is: "json" },
  hint: "Give JSON.",
  read(given, place) {
    const written = within(place.path, () => jsonText(given, says(place)));
    return written === null ? null : (JSON.parse(written) as Json);
  },
  write: (kept) => kept,
};

export interface Field {
  kind: Kind;
  description: string;
  /** The field's name in the stored definition; default: the name in the option. */
  kept?: string;
  /** The default, read like a given value. With null the stored value is null; with undefined the field is left out. */
  usual?: unknown;
  /** Returns the default, if it depends on the fields that were read before. */
  usualOf?: (kept: Record<string, unknown>) => unknown;
  required?: true;
}

interface ObjectOptions<Kept> {
  /** An example for the hint. */
  example: string;
  /** The name of the field that is meant if the value is not an object. */
  alone?: string;
  /** True if an edit may give only some of the fields; see `merged`. */
  mergedByEdits?: true;
  /** Checks the fields together. @throws TASK_INVALID for fields that cannot be combined */
  together?: (kept: Kept, place: Place) => void;
}

/**
 * Returns true if the kind accepts null as a value. Only JSON does; for other fields with a default, null means that no value was
 * given.
 */
const takesNull = ({ shape }: Kind) => shape.is === "json";

export function object<Kept extends object>(
  fields: Record<string, Field>,
  { example, alone, mergedByEdits, together }: ObjectOptions<Kept>,
): Kind<Kept> {
  const names = Object.keys(fields);
  const keptName = (one: string) => fields[one]?.kept ?? one;
  const usualOf = ({ usual, usualOf }: Field, kept: Record<string, unknown>) => (usualOf ? usualOf(kept) : usual);
  const nowhere: Place = { task: undefined, path: "" };
  /** Returns the field in the form of a file; undefined if it has no value. */
  const written = (kept: Record<string, unknown>, one: string): Json | undefined => {
    const value = kept[keptName(one)];
    const { kind } = fields[one] as Field;
    return value === undefined || (value === null && !takesNull(kind)) ? undefined : kind.write(value);
  };
  const asWritten = ({ kind }: Field, usual: unknown): Json | undefined =>
    usual === undefined || usual === null ? undefined : kind.write(kind.read(usual, nowhere));
  const usualTexts = new Map(Object.entries(fields).map(([one, field]) => [one, asWritten(field, field.usual)]));
  const usualWritten = (one: string, field: Field, kept: Record<string, unknown>): Json | undefined =>
    field.usualOf ? asWritten(field, field.usualOf(kept)) : usualTexts.get(one);
  const shape: Shape = {
    is: "object",
    fields: Object.fromEntries(
      Object.entries(fields).map(([one, field]) => [
        one,
        {
          shape: field.kind.shape,
          required: field.required === true,
          description: field.description,
          usual: usualTexts.get(one),
        },
      ]),
    ),
    ...(mergedByEdits ? { mergedByEdits } : {}),
  };
  return {
    shape: alone === undefined ? shape : { is: "either", of: [(fields[alone] as Field).kind.shape, shape] },
    hint: `For example ${example}.`,
    read(given, place) {
      const isAlone = alone !== undefined && (typeof given !== "object" || given === null);
      const whole = isAlone ? { [alone]: given } : given;
      if (!isObject(whole)) throw wrong(place, ` cannot be ${shownValue(given)}: it must be an object`, this.hint);
      const unknown = Object.keys(whole).find((one) => !names.includes(one));
      if (unknown !== undefined) throw stranger(place, unknown, names);
      const kept: Record<string, unknown> = {};
      for (const [one, field] of Object.entries(fields)) {
        const at = inner(place, one);
        const isNone = whole[one] === null && (field.usual !== undefined || field.usualOf) && !takesNull(field.kind);
        const given = isNone ? undefined : whole[one];
        const isUsual = given === undefined && !field.required;
        const value = isUsual ? usualOf(field, kept) : given;
        if (value === undefined && field.required) throw wrong(at, " is missing", `${this.hint} ${field.kind.hint}`);
        if (value === undefined) continue;
        kept[keptName(one)] = isUsual && value === null && !takesNull(field.kind) ? null : field.kind.read(value, at);
      }
      together?.(kept as Kept, place);
      return kept as Kept;
    },
    write(given) {
      const kept = given as Record<string, unknown>;
      const said: Record<string, Json> = {};
      for (const [one, field] of Object.entries(fields)) {
        const value = written(kept, one);
        if (value === undefined) continue;
        if (!field.required && sortedJson(value) === sortedJson(usualWritten(one, field, kept) ?? null)) continue;
        said[one] = value;
      }
      const [first, second] = Object.keys(said);
      return first === alone && second === undefined && alone !== undefined ? (said[alone] as Json) : said;
    },
    ...(mergedByEdits
      ? {
          merged(kept: Kept, given: unknown) {
            const said = isObject(given)
              ? given
              : alone !== undefined && typeof given !== "object"
                ? { [alone]: given }
                : null;
            if (said === null) return given;
            const before = names.map((one) => [one, written(kept as Record<string, unknown>, one)]);
            return { ...Object.fromEntries(before.filter(([, value]) => value !== undefined)), ...said };
          },
        }
      : {}),
  };
}
