/**
 * The fields of a source and what becomes of them, one per line: name | fate | meaning | hint. An importer reads `carried` fields; `lost`
 * fields are reported if they have a value; `unused` fields do not affect a task's schedule or work. A field that is missing from the table
 * is reported as lost, so that fields of a newer source are not lost silently. docs/importing-fields.md shows these tables.
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

/** @param place the object that the fields belong to, such as "Target" */
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

/** True for values that mean "not set": absent, empty, zero and off. A lost field is reported only if it is set. */
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

/** Reports once that the programs themselves were not imported, and where each is named. */
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
