/**
 * What an importer makes of another scheduler's export: tasks in a file's words, and all that they do not say. Nothing is
 * left out silently: what a source says and a task cannot is a remark, and what cannot be a task at all is a problem.
 */
import { isCarillonError } from "../errors.ts";
import { limits } from "../limits.ts";
import { readWritten, type WrittenTask, writtenTask } from "../written-task.ts";

export interface SourceFile {
  path: string;
  text: string;
}

export interface ImportOptions {
  /** Of crons that name none: where the old scheduler runs. */
  zone: string;
  /** The workers that are to run the tasks; default: what the source says, or "default". */
  group?: string | undefined;
}

export interface ImportedTask {
  name: string;
  written: WrittenTask;
  comment: string;
}

export interface Remark {
  /** problem: not imported. lost: imported without it. note: imported, and to be looked at. */
  kind: "problem" | "lost" | "note";
  /** What the source calls it; "": the file as a whole. */
  source: string;
  message: string;
  hint: string;
}

const remarkLength = 1_000;
/** It may quote the source, in which anything may stand. */
const clipped = (text: string): string => (text.length <= remarkLength ? text : `${text.slice(0, remarkLength - 1)}…`);

export class Findings {
  readonly tasks: ImportedTask[] = [];
  readonly remarks: Remark[] = [];
  readonly #names = new Set<string>();
  readonly #counts = new Map<string, number>();

  problem = (source: string, message: string, hint = ""): void => this.#remark("problem", source, message, hint);
  lost = (source: string, message: string, hint = ""): void => this.#remark("lost", source, message, hint);
  note = (source: string, message: string, hint = ""): void => this.#remark("note", source, message, hint);

  /** @param options as a file writes them; what is undefined is not said. @returns the task's name, if it could be one */
  add(
    source: string,
    wanted: string,
    options: Record<string, unknown>,
    { comment = "", suspended = false } = {},
  ): string | undefined {
    const name = this.#free(wanted);
    if (name !== wanted)
      this.note(source, `is called ${name} here: ${JSON.stringify(wanted)} is taken or cannot be a name`);
    try {
      const said = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
      const definition = readWritten(name, said);
      const written = writtenTask(definition);
      // What stood still must not begin to run because it moved.
      const stands = suspended && written.schedule !== undefined;
      const { schedule, ...rest } = written;
      const lines = [comment, stands ? `stood still; its schedule: ${JSON.stringify(schedule)}` : ""].filter(
        (line) => line !== "",
      );
      if (stands)
        this.note(
          source,
          "stands still, so it is imported without its schedule",
          "The schedule is in the remark above the task.",
        );
      this.tasks.push({ name, written: stands ? rest : written, comment: lines.join("\n") });
      this.#names.add(name);
      return name;
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      const message = error.message.startsWith(`task ${name}: `)
        ? error.message.slice(`task ${name}: `.length)
        : error.message;
      this.problem(source, message, error.hint);
      return undefined;
    }
  }

  #free(wanted: string): string {
    const plain = wanted
      .replace(/[^\p{L}\p{N}._:/@-]+/gu, "-")
      .replace(/^[^\p{L}\p{N}]+/u, "")
      .slice(0, limits.taskNameLength - 10);
    const base = plain === "" ? "task" : plain;
    let name = base;
    // Where the last search for a free number ended: thousands may be called alike.
    let count = this.#counts.get(base) ?? 2;
    for (; this.#names.has(name); count++) name = `${base}-${count}`;
    this.#counts.set(base, count);
    return name;
  }

  #remark(kind: Remark["kind"], source: string, message: string, hint: string): void {
    this.remarks.push({ kind, source: clipped(source), message: clipped(message), hint });
  }
}

export type Row = Record<string, unknown>;
export const isRow = (value: unknown): value is Row =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What lies at "spec.template.metadata" of nested objects. */
export function within(value: unknown, path: string): unknown {
  let at = value;
  for (const name of path.split(".")) {
    if (!isRow(at)) return undefined;
    at = at[name];
  }
  return at;
}

/** A text or a number as a text; "" for what is neither. */
export const textOf = (value: unknown): string =>
  typeof value === "string" ? value.trim() : typeof value === "number" ? String(value) : "";

/** A number, also one that an export wrote as a text. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  return typeof value === "string" && /^-?\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : undefined;
}

export const rowsOf = (value: unknown): Row[] => (Array.isArray(value) ? value.filter(isRow) : []);

/** JSON, or undefined with a problem told. Also one object a line, as `psql` and `jq -c` write. */
export function readJson({ path, text }: SourceFile, findings: Findings): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    try {
      if (lines.length > 1) return lines.map((line) => JSON.parse(line) as unknown);
    } catch {
      // Not lines of JSON either: told below, by what is wrong with it as one document.
    }
    findings.problem("", `${path} is not JSON: ${(cause as Error).message}`, "Export the rows as one JSON array.");
    return undefined;
  }
}
