/**
 * The result of importing another scheduler's export: tasks in the format of a task file, and remarks. Nothing is left out silently: a
 * detail that a task cannot express gives a remark, and an entry that cannot become a task gives a problem.
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
  /** The zone of crons that name none, which should be the old scheduler's zone. */
  zone: string;
  /** The worker group of the tasks; default: the source's, or "default". */
  group?: string | undefined;
  /** Epoch milliseconds; a task that has ended by then is imported without its schedule. */
  nowMs: number;
}

/** Facts about a task in the source that are not options of a task. */
export interface Beside {
  comment?: string;
  /** The task was suspended in the source. */
  suspended?: boolean;
  /** Epoch milliseconds of the first possible slot. */
  fromMs?: number | undefined;
  /** Epoch milliseconds from which on the task has no more slots. */
  untilMs?: number | undefined;
  /** The fire times in the source's own notation; undefined: the times cannot be compared. */
  times?: SourceTimes | undefined;
}

/** The source's own times, which --compare lists beside the task's. */
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
  /** problem: the entry was not imported. lost: a detail was not imported. note: imported, but should be checked. */
  kind: "problem" | "lost" | "note";
  /** The entry's name in the source; "": the file as a whole. */
  source: string;
  message: string;
  hint: string;
}

const remarkLength = 1_000;
/** A remark may quote the source, which may have any length. */
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

  /** @param options as a file writes them; undefined options are left out @returns the task's name; undefined: it cannot be a task */
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
      // A task that was suspended or over must not start to run because of the import.
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

  /** The schedule's start, if it is in the future, and its end. */
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
    // Continues where the last search for a free number ended, because thousands of tasks may have the same name.
    let count = this.#counts.get(base) ?? 2;
    for (; this.#names.has(name); count++) name = `${base}-${count}`;
    this.#counts.set(base, count);
    return name;
  }

  #remark(kind: Remark["kind"], source: string, message: string, hint: string): void {
    this.remarks.push({ kind, source: clipped(source), message: clipped(message), hint });
  }
}

/** Adds start and end to a schedule; a schedule given as text is a cron. */
const withBounds = (schedule: unknown, bounds: object) =>
  typeof schedule === "string" ? { cron: schedule, ...bounds } : { ...(schedule as object), ...bounds };

/** True if a slot is left before `untilMs`. A task without a schedule is never over. */
function hasSlot(schedule: ScheduleSpec, afterMs: number, untilMs = Number.POSITIVE_INFINITY): boolean {
  if (schedule.type === "manual") return true;
  const [slot] = nextSlots(schedule, afterMs, 1);
  return slot !== undefined && slot < untilMs;
}

export type Row = Record<string, unknown>;
export const isRow = (value: unknown): value is Row =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value at a path such as "spec.template.metadata" of nested objects. */
export function within(value: unknown, path: string): unknown {
  let at = value;
  for (const name of path.split(".")) {
    if (!isRow(at)) return undefined;
    at = at[name];
  }
  return at;
}

/** A text or a number as text; "" for any other value. */
export const textOf = (value: unknown): string =>
  typeof value === "string" ? value.trim() : typeof value === "number" ? String(value) : "";

/** A number, or a text that an export wrote for a number. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  return typeof value === "string" && /^-?\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : undefined;
}

/** A column, by its name in the database or by its camel-case name in the API. */
export const column = (row: Row, name: string): unknown =>
  row[name] ?? row[name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())];

export const rowsOf = (value: unknown): Row[] => (Array.isArray(value) ? value.filter(isRow) : []);

/** Parses JSON; undefined: a problem was reported. Also reads one object per line, as `psql` and `jq -c` write. */
export function readJson({ path, text }: SourceFile, findings: Findings): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    try {
      if (lines.length > 1) return lines.map((line) => JSON.parse(line) as unknown);
    } catch {
      // The lines are not JSON either; the problem below describes the text as one document.
    }
    findings.problem("", `${path} is not JSON: ${(cause as Error).message}`, "Export the rows as one JSON array.");
    return undefined;
  }
}
