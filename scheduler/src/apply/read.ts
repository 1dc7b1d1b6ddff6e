/**
 * Reads definitions of tasks, alarm rules and hooks from YAML, and reports the mistakes, each with its line if the line is known. Also
 * reads definitions from values that modules export, which have no lines.
 */
import { LineCounter } from "yaml";
import { type CarillonError, isCarillonError, stepsOf } from "../base/errors.ts";
import type { ItemKind } from "../task/applied-store.ts";
import type { TaskDefinition } from "../task/task.ts";
import { readWritten } from "../task/written.ts";
import { checkBundle } from "./apply-plan.ts";
import { checkItem, checkItemName, type GivenItem } from "./plan-items.ts";
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
  /** The alarm rules and hooks. */
  items: (GivenItem & { line: number | null })[];
  problems: FileProblem[];
}

type LineOf = (path: readonly string[]) => number | null;
/** The names of the parts of a file that hold alarm rules and hooks. */
export const itemParts: Readonly<Record<ItemKind, "alarms" | "hooks">> = { alarm: "alarms", hook: "hooks" };
const topNames = ["bundle", "tasks", ...Object.values(itemParts)];

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

/**
 * Reads definitions from parsed content.
 * @param content { bundle, tasks, alarms, hooks }; the last three hold definitions by name
 * @param lineOf returns the line of a path
 */
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
  const read: ReadFile = { file, bundle: null, tasks: [], items: [], problems: [] };
  for (const name of Object.keys(content).filter((name) => !topNames.includes(name))) {
    const hint = `A file has ${topNames.join(", ")}; tasks stand below tasks:.`;
    read.problems.push(problem([name], "FILE_INVALID", `there is no ${JSON.stringify(name)} here`, hint));
  }
  const { bundle } = content;
  if (bundle !== undefined) {
    try {
      read.bundle = checkBundle(bundle);
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      read.problems.push(problem(["bundle"], error.code, error.message, error.hint));
    }
  }
  const found = { problems: read.problems, problem, lineOf };
  const { tasks, alarms, hooks } = content;
  for (const { value, line } of entriesOf({ ...found, part: "tasks", given: tasks }, (name, one) =>
    readWritten(name, one ?? {}),
  ))
    read.tasks.push({ definition: value, line });
  for (const [item, given] of [["alarm", alarms] as const, ["hook", hooks] as const])
    for (const { name, value, line } of entriesOf({ ...found, part: itemParts[item], given }, (name, one) => {
      checkItemName(item, name);
      return checkItem(item, name, one);
    }))
      read.items.push({ item, name, content: value, line });
  return read;
}

interface Found {
  part: string;
  given: unknown;
  problems: FileProblem[];
  problem: (path: string[], code: string, message: string, hint: string) => FileProblem;
  lineOf: LineOf;
}

/** Reads each entry of a part of a file. @param check reads one entry; its CarillonErrors become problems @returns the valid entries */
function entriesOf<Value>(
  { part, given = {}, problems, problem, lineOf }: Found,
  check: (name: string, written: unknown) => Value,
): { name: string; value: Value; line: number | null }[] {
  // A part without entries is allowed, because it remains when the last entry is deleted from a file.
  if (given !== null && !isObject(given)) {
    problems.push(problem([part], "FILE_INVALID", `${part} must hold names`, `Such as ${part}: { settle: { … } }.`));
    return [];
  }
  return Object.entries(given ?? {}).flatMap(([name, written]) => {
    try {
      return [{ name, value: check(name, written), line: lineOf([part, name]) }];
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      const mistakes = mistakesOf((some) => check(name, some), written, error).map(({ code, message, hint, path }) =>
        problem([part, name, ...stepsOf(path)], code, message, hint),
      );
      problems.push(...mistakes.sort((a, b) => (a.line ?? 0) - (b.line ?? 0)));
      return [];
    }
  });
}

/**
 * Returns the mistakes of a task, an alarm rule or a hook, one per option, so that the author can correct them together. After each
 * mistake the wrong option is removed and the other options are read again; a wrong schedule is replaced by a valid one, because other
 * options require a schedule.
 * @param reading reads the options, and throws the next mistake
 */
function mistakesOf(reading: (written: unknown) => unknown, written: unknown, first: CarillonError): CarillonError[] {
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
      reading(rest);
      return found;
    } catch (next) {
      if (!isCarillonError(next)) throw next;
      // A required option that is wrong would be reported again, as missing.
      if (looked.has(stepsOf(next.path)[0] ?? "")) return found;
      found.push(next);
      error = next;
    }
  }
}

const failed = (problem: FileProblem): ReadFile => ({
  file: problem.file,
  bundle: null,
  tasks: [],
  items: [],
  problems: [problem],
});

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
