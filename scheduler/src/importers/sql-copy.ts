/** Reads PostgreSQL dumps: the rows of `COPY table (columns) FROM stdin`, one row per line with tabs between the values. */
import type { Row } from "./findings.ts";

const block = /^COPY\s+(?:"?\w+"?\.)?"?(\w+)"?\s*\(([^)]*)\)\s+FROM\s+stdin;\r?\n([\s\S]*?)^\\\.\s*$/gim;
const escapes: Record<string, string> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };

/** @returns the rows by table name in lower case, and the text without the COPY blocks, which is ordinary SQL */
export function rowsOfCopy(text: string): { rows: Map<string, Row[]>; rest: string } {
  const rows = new Map<string, Row[]>();
  const rest = text.replace(block, (_, table: string, columns: string, lines: string) => {
    const names = columns.split(",").map((name) => name.trim().replaceAll('"', "").toLowerCase());
    const kept = rows.get(table.toLowerCase()) ?? [];
    rows.set(table.toLowerCase(), kept);
    for (const line of lines.split(/\r?\n/).filter((one) => one !== "")) {
      const values = line.split("\t");
      kept.push(Object.fromEntries(names.map((name, at) => [name, readValue(values[at] ?? "\\N")])));
    }
    return "";
  });
  return { rows, rest };
}

const readValue = (text: string): string | null =>
  text === "\\N" ? null : text.replace(/\\(.)/g, (_, char: string) => escapes[char] ?? char);
