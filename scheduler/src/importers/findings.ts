/**
 * The result of importing another scheduler's export: tasks in the format of a task file, and remarks. A detail that a task
 * cannot express gives a remark of the kind `lost`, and an entry that cannot become a task gives a `problem`.
 */
import { isCarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { nextSlots, type ScheduleSpec } from "../schedule/schedule.ts";
import { endOfTime } from "../schedule/zone.ts";
import { readWritten, type WrittenTask, writtenTask } from "../task/written.ts";
import type { SourceTimes } from "./compare/source-times.ts";

export interface SourceFile {
  path: string;
  text: string;
}

export interface ImportOptions {
  /** The time zone of cron expressions without a zone. It should be the old scheduler's zone. */
  zone: string;
  /** The worker group of the tasks; default: the group in the source, or "default". */
  group?: string | undefined;
  /** The current time in epoch ms. A task whose last slot is before this time is imported without its schedule. */
  nowMs: number;
}

/** Facts about a task in the source that the options of a Carillon task do not include. */
export interface Beside {
  comment?: string;
  /** The task was suspended in the source. */
  suspended?: boolean;
  /** The earliest time of a slot, in epoch milliseconds. */
  fromMs?: number | undefined;
  /** All slots are before this time (epoch ms). */
  untilMs?: number | undefined;
  /** The fire times in the source's own notation; undefined if they cannot be compared with the task's. */
  times?: SourceTimes | undefined;
}

/** The source's own times, which the option --compare lists beside the task's times. */
export interface ToldTimes {
  times: SourceTimes;
  suspended: boolean;
  fromMs: number | undefined;
  untilMs: number | undefined;
}

export interface ImportedTask {
  name: string;
  written: WrittenTask;
  comment: string;
  told?: ToldTimes;
}

export interface Remark {
  /**
   * `problem`: the entry was not imported. `lost`: a detail of it was not imported. `note`: it was imported, but the user should check it.
   */
  kind: "problem" | "lost" | "note";
  /** The entry's name in the source; "" if the remark concerns the whole file. */
  source: string;
  message: string;
  hint: string;
}

const remarkLength = 1_000;
/** Shortens a text to `remarkLength` characters, because a remark may quote a text of any length from the source. */
const clipped = (text: string): string => (text.length <= remarkLength ? text : `${text.slice(0, remarkLength - 1)}…`);

export class Findings {
  readonly tasks: ImportedTask[] = [];
  readonly remarks: Remark[] = [];
  readonly #names = new Set<string>();
  readonly #counts = new Map<string, number>();
  readonly #nowMs: number;

  constructor({ nowMs }: Pick<ImportOptions, "nowMs">) {
    this.#nowMs = nowMs;
  }

  problem = (source: string, message: string, hint = ""): void => this.#remark("problem", source, message, hint);
  lost = (source: string, message: string, hint = ""): void => this.#remark("lost", source, message, hint);
  note = (source: string, message: string, hint = ""): void => this.#remark("note", source, message, hint);

  /**
   * Adds a task.
   * @param options the options as a task file writes them; options that are undefined are left out
   * @returns the task's name; undefined if the options are invalid, which is then reported as a problem
   */
  add(
    source: string,
    wanted: string,
    options: Record<string, unknown>,
    { comment = "", suspended = false, fromMs, untilMs, times }: Beside = {},
  ): string | undefined {
    const name = this.#free(wanted);
    if (name !== wanted)
      this.note(source, `is called ${name} here: ${JSON.stringify(wanted)} is taken or cannot be a name`);
    try {
      const said = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
      const ended = untilMs !== undefined && untilMs <= this.#nowMs;
      const bare = readWritten(name, said);
      const afterMs = Math.max(this.#nowMs, (fromMs ?? 0) - 1);
      const over = ended || !hasSlot(bare.schedule, afterMs, untilMs);
      const bounds = over ? {} : this.#bounds(source, fromMs, untilMs);
      const isBounded = Object.keys(bounds).length > 0;
      const definition = isBounded ? readWritten(name, { ...said, schedule: withBounds(said.schedule, bounds) }) : bare;
      const written = writtenTask(definition);
      // A task that was suspended in the source, or that has no slot left, is imported without its schedule, so that it starts no runs.
      const stands = (suspended || over) && written.schedule !== undefined;
      const { schedule, ...rest } = written;
      const why = suspended
        ? "stood still"
        : ended
          ? `ended at ${new Date(untilMs).toISOString()}`
          : "has no slot left";
      const lines = [comment, stands ? `${why}; its schedule: ${JSON.stringify(schedule)}` : ""].filter(
        (line) => line !== "",
      );
      if (stands)
        this.note(
          source,
          `${suspended ? "stands still" : why}, so it is imported without its schedule`,
          "The schedule is in the remark above the task.",
        );
      this.tasks.push({
        name,
        written: stands ? rest : written,
        comment: lines.join("\n"),
        ...(times === undefined ? {} : { told: { times, suspended, fromMs, untilMs } }),
      });
      this.#names.add(name);
      return name;
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      this.problem(source, error.message, error.hint);
      return undefined;
    }
  }

  /** Returns the schedule's start, if it is in the future, and its end; adds a note for each. */
  #bounds(source: string, fromMs = 0, untilMs = Number.POSITIVE_INFINITY): { from?: string; until?: string } {
    const bounds: { from?: string; until?: string } = {};
    if (fromMs > this.#nowMs) bounds.from = new Date(fromMs).toISOString();
    if (untilMs < endOfTime) bounds.until = new Date(untilMs - 1).toISOString();
    if (bounds.from) this.note(source, `begins at ${bounds.from}, as its schedule says`);
    if (bounds.until) this.note(source, `ends after ${bounds.until}, as its schedule says`, "Remove the task then.");
    return bounds;
  }

  #free(wanted: string): string {
    const plain = wanted
      .replace(/[^\p{L}\p{N}._:/@-]+/gu, "-")
      .replace(/^[^\p{L}\p{N}]+/u, "")
      .slice(0, limits.taskNameLength - 10);
    const base = plain === "" ? "task" : plain;
    let name = base;
    // The search for a free number continues where the last search for the same name ended, because thousands of tasks may share a name.
    let count = this.#counts.get(base) ?? 2;
    for (; this.#names.has(name); count++) name = `${base}-${count}`;
    this.#counts.set(base, count);
    return name;
  }

  #remark(kind: Remark["kind"], source: string, message: string, hint: string): void {
    this.remarks.push({ kind, source: clipped(source), message: clipped(message), hint });
  }
}

/** Adds start and end to a schedule. A schedule given as text is a cron expression. */
const withBounds = (schedule: unknown, bounds: object) =>
  typeof schedule === "string" ? { cron: schedule, ...bounds } : { ...(schedule as object), ...bounds };

/** True if the schedule has a slot after `afterMs` and before `untilMs`, or if the task has no schedule. */
function hasSlot(schedule: ScheduleSpec, afterMs: number, untilMs = Number.POSITIVE_INFINITY): boolean {
  if (schedule.type === "manual") return true;
  const [slot] = nextSlots(schedule, afterMs, 1);
  return slot !== undefined && slot < untilMs;
}

export type Row = Record<string, unknown>;
export const isRow = (value: unknown): value is Row =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the value at a path such as "spec.template.metadata" in nested objects; undefined if the path leads to no value. */
export function within(value: unknown, path: string): unknown {
  let at = value;
  for (const name of path.split(".")) {
    if (!isRow(at)) return undefined;
    at = at[name];
  }
  return at;
}

/** Converts a string or a number to text; returns "" for any other value. */
export const textOf = (value: unknown): string =>
  typeof value === "string" ? value.trim() : typeof value === "number" ? String(value) : "";

/** Converts a number, or a decimal number written as text, to a number; returns undefined for any other value. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  return typeof value === "string" && /^-?\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : undefined;
}

/** Returns the value of a column, found by its database name or by the camel-case form of that name, which APIs use. */
export const column = (row: Row, name: string): unknown => row[name] ?? row[camelCase(name)];

/** Converts names of columns to camel case, as APIs write them. */
export function camelCase(names: string): string {
  return names.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export const rowsOf = (value: unknown): Row[] => (Array.isArray(value) ? value.filter(isRow) : []);

/** Parses a file as JSON, or else as one JSON value per line, as `psql` and `jq -c` write. Returns undefined after reporting a problem. */
export function readJson({ path, text }: SourceFile, findings: Findings): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    try {
      if (lines.length > 1) return lines.map((line) => JSON.parse(line) as unknown);
    } catch {
      // The lines are not JSON either, so the problem below gives the parser's error for the whole text.
    }
    findings.problem("", `${path} is not JSON: ${(cause as Error).message}`, "Export the rows as one JSON array.");
    return undefined;
  }
}
