/**
 * Tables that list the fields of a source format, one field per line: name | fate | meaning | hint. The importer converts `carried` fields;
 * a `lost` field is reported if it has a value; an `unused` field does not affect the task's schedule or work. A field that the table does
 * not list is reported as lost if it has a value, so that fields of a newer version of the source are not dropped silently.
 * docs/reference/importing-fields.md shows these tables.
 */
import type { Findings, Row } from "./findings.ts";

export interface FieldMeaning {
  name: string;
  fate: "carried" | "lost" | "unused";
  meaning: string;
  hint: string;
}

export type FieldTable = ReadonlyMap<string, FieldMeaning>;

const fates: readonly string[] = ["carried", "lost", "unused"];

export function fieldTable(text: string): FieldTable {
  const rows = text
    .trim()
    .split("\n")
    .map((line) => {
      const [name = "", fate = "", meaning = "", hint = ""] = line.split("|").map((part) => part.trim());
      if (!fates.includes(fate)) throw new Error(`${line}: ${fate} is no fate`);
      return { name, fate: fate as FieldMeaning["fate"], meaning, hint };
    });
  return new Map(rows.map((row) => [row.name, row]));
}

/**
 * Reports every field of `row` that has a value and that the table marks as `lost` or does not list.
 * @param place the object that contains the fields, such as "Target"; "" for the entry itself
 */
export function tellFields(row: Row, table: FieldTable, source: string, findings: Findings, place = ""): void {
  for (const [name, value] of Object.entries(row)) {
    const known = table.get(name);
    if (known && (known.fate !== "lost" || saysNothing(value))) continue;
    const path = place === "" ? name : `${place}.${name}`;
    if (known) findings.lost(source, `its ${path} ${shown(value)}: ${known.meaning}`, known.hint);
    else if (!saysNothing(value))
      findings.lost(source, `its ${path} ${shown(value)}, a field that is not known here`, "See what it means there.");
  }
}

/** A table of fields that the importer reads, or reports itself, or that say nothing about when or what a task runs. */
export const readFields = (names: string): FieldTable =>
  fieldTable(
    words(names)
      .map((name) => `${name} | carried`)
      .join("\n"),
  );

const words = (text: string): string[] => text.trim().split(/\s+/);

/** True for values that mean "not set": absent, empty, zero and false. Only fields that are set are reported as lost. */
export function saysNothing(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === 0) return true;
  if (typeof value === "string") return ["", "0", "{}", "[]", "false"].includes(value.trim());
  return typeof value === "object" && Object.keys(value).length === 0;
}

const shownLength = 80;

function shown(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length <= shownLength ? text : `${text.slice(0, shownLength - 1)}…`;
}

/** Adds one note for all tasks: the programs were not imported, and the comment above each task names its program. */
export function tellHandlers(count: number, what: string, findings: Findings): void {
  if (count > 0)
    findings.note(
      "",
      `${count} ${count === 1 ? "task" : "tasks"} ran ${what}, named in the remark above each`,
      "Give a worker a handler of the task's name, or the task a command or http.",
    );
}

export function tellZone(count: number, zone: string, meant: string, findings: Findings): void {
  if (count > 0)
    findings.note("", `${count} without a zone are taken to mean ${zone}`, `${meant}; say another with --zone.`);
}
