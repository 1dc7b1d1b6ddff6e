/**
 * Reads task definitions from YAML, and reports the mistakes, each with its line if that is known. Also reads them from values that modules
 * export, which have no lines.
 */
import { LineCounter } from "yaml";
import { type CarillonError, isCarillonError, stepsOf } from "../base/errors.ts";
import type { TaskDefinition } from "../task/task.ts";
import { readWritten } from "../task/written.ts";
import { checkBundle } from "./apply-plan.ts";
import { inexactIn, mergeKeyIn, Places, yamlDocuments } from "./yaml-documents.ts";

export interface FileProblem {
  file: string;
  /** The line's number from 1; null: the file has no lines, or the line is unknown. */
  line: number | null;
  /** The path of the option, such as "tasks.settle.retry.attempts". */
  path: string;
  code: string;
  message: string;
  hint: string;
}

export interface ReadFile {
  file: string;
  /** The bundle that the file names; null: it names none. */
  bundle: string | null;
  tasks: { definition: TaskDefinition; line: number | null }[];
  problems: FileProblem[];
}

type LineOf = (path: readonly string[]) => number | null;
const topNames = ["bundle", "tasks"];

export function readYaml(file: string, text: string): ReadFile {
  const lines = new LineCounter();
  const lineAt = (offset: number | null | undefined) => (offset == null ? null : lines.linePos(offset).line);
  // A file with several YAML documents is refused, because all documents after the first would be ignored.
  const [read, second] = yamlDocuments(text, lines);
  const broken = read && "problem" in read ? read : second && { problem: "it is more than one document", offset: null };
  if (broken) {
    const line = lineAt(broken.offset);
    const hint =
      line === null
        ? "Write out what aliases stand for; no task needs so many levels, and a file is one document."
        : "Mend the YAML there: indentation by spaces, a space after each colon, texts with : or # in quotes.";
    return failed({ file, line, path: "", code: "FILE_INVALID", message: `not YAML: ${broken.problem}`, hint });
  }
  if (!read || "problem" in read) return readTasks(file, null);
  const inexact = inexactIn(read.document);
  if (inexact) {
    const message = `${inexact.number} is a number that JSON cannot hold exactly`;
    const hint = "Give it as a text, in quotes.";
    return failed({ file, line: lineAt(inexact.offset), path: "", code: "FILE_INVALID", message, hint });
  }
  const merge = mergeKeyIn(read.document);
  if (merge) {
    const message = "<< merges nothing: YAML 1.2 has no merge keys";
    const hint =
      'Write out what it stands for; `name: *anchor` repeats a whole value. A name that is << goes in quotes: "<<".';
    return failed({ file, line: lineAt(merge.offset), path: "", code: "FILE_INVALID", message, hint });
  }
  const places = new Places(read.document);
  return readTasks(file, read.content, (path) => lineAt(places.offsetOf(path)));
}

/** Reads tasks from parsed content. @param content { bundle, tasks: { name: options } } @param lineOf returns the line of a path */
export function readTasks(file: string, content: unknown, lineOf: LineOf = () => null): ReadFile {
  const problem = (path: string[], code: string, message: string, hint: string): FileProblem => ({
    file,
    line: lineOf(path),
    path: path.join("."),
    code,
    message,
    hint,
  });
  if (!isObject(content))
    return failed(
      problem([], "FILE_INVALID", "has no tasks", "Begin with tasks:, and below it a name and its options."),
    );
  const read: ReadFile = { file, bundle: null, tasks: [], problems: [] };
  for (const name of Object.keys(content).filter((name) => !topNames.includes(name))) {
    const hint = `A file has ${topNames.join(" and ")}; tasks stand below tasks:.`;
    read.problems.push(problem([name], "FILE_INVALID", `there is no ${JSON.stringify(name)} here`, hint));
  }
  const { bundle, tasks = {} } = content;
  if (bundle !== undefined) {
    try {
      read.bundle = checkBundle(bundle);
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      read.problems.push(problem(["bundle"], error.code, error.message, error.hint));
    }
  }
  // `tasks:` without entries is allowed, because it remains when the last task is deleted from a file.
  const entries = tasks === null ? [] : isObject(tasks) ? Object.entries(tasks) : undefined;
  if (!entries) {
    read.problems.push(
      problem(["tasks"], "FILE_INVALID", "tasks must hold names", "Such as tasks: { settle: { … } }."),
    );
    return read;
  }
  for (const [name, written] of entries) {
    try {
      read.tasks.push({ definition: readWritten(name, written ?? {}), line: lineOf(["tasks", name]) });
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      const mistakes = mistakesOf(name, written, error).map(({ code, message, hint, path }) =>
        problem(["tasks", name, ...stepsOf(path)], code, message, hint),
      );
      read.problems.push(...mistakes.sort((a, b) => (a.line ?? 0) - (b.line ?? 0)));
    }
  }
  return read;
}

/**
 * Returns the mistakes of a task, one per option, so that the author can correct them together. After each mistake the wrong
 * option is removed and the other options are read again; a wrong schedule is replaced by a valid one, because other options
 * require a schedule.
 */
function mistakesOf(name: string, written: unknown, first: CarillonError): CarillonError[] {
  const found = [first];
  if (!isObject(written)) return found;
  const rest: Record<string, unknown> = { ...written };
  const looked = new Set<string>();
  for (let error = first; ; ) {
    const [option = ""] = stepsOf(error.path);
    if (!Object.hasOwn(rest, option) || looked.has(option)) return found;
    looked.add(option);
    if (option === "schedule") rest.schedule = { every: "1h" };
    else delete rest[option];
    try {
      readWritten(name, rest);
      return found;
    } catch (next) {
      if (!isCarillonError(next)) throw next;
      found.push(next);
      error = next;
    }
  }
}

const failed = (problem: FileProblem): ReadFile => ({
  file: problem.file,
  bundle: null,
  tasks: [],
  problems: [problem],
});

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
