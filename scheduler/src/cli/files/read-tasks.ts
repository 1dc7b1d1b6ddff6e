import { readFileSync, statSync } from "node:fs";
import { checkBundle } from "../../apply/apply-plan.ts";
import { type GivenItem, itemWords } from "../../apply/plan-items.ts";
import { type FileProblem, itemParts, type ReadFile, readTasks, readYaml } from "../../apply/read.ts";
import { CarillonError, isCarillonError, messageOf } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { ItemKind } from "../../task/applied-store.ts";
import type { TaskDefinition } from "../../task/task.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { loadTasksModule } from "./task-file.ts";

export interface TasksRead {
  bundle: string;
  /** True if an option or a file names the bundle; false: `bundle` is the default. */
  named: boolean;
  definitions: TaskDefinition[];
  /** The alarm rules and hooks; an empty list for a kind of which there is none. */
  items: Record<ItemKind, GivenItem[]>;
  problems: FileProblem[];
}

const defaultBundle = "default";

/** Reads all definitions of some files, and collects every problem. @throws FILE_INVALID, OPTION_INVALID, USAGE */
export async function readTaskFiles(files: string[], given: string | undefined): Promise<TasksRead> {
  const reads: ReadFile[] = [];
  for (const file of files) reads.push(await readOne(file));
  const problems = reads.flatMap((read) => read.problems);
  const bundles = new Set(reads.flatMap(({ bundle }) => (bundle === null ? [] : [bundle])));
  if (given === undefined && bundles.size > 1)
    throw new CarillonError("USAGE", `the files name several bundles: ${[...bundles].join(", ")}`, {
      hint: "Apply them one by one, or say which with --bundle.",
    });
  const definitions = new Map<string, { definition: TaskDefinition; where: string }>();
  for (const { file, tasks } of reads) {
    for (const { definition, line } of tasks) {
      const { name } = definition;
      const before = definitions.get(name);
      const where = line === null ? file : `${file}:${line}`;
      if (before) {
        const path = `tasks.${name}`;
        const message = `the task ${name} is in ${before.where} already`;
        problems.push({ file, line, path, code: "TASK_DUPLICATE", message, hint: "Leave out one of the two." });
      } else definitions.set(name, { definition, where });
    }
  }
  const items = itemsOf(reads, problems);
  return {
    bundle: given === undefined ? ([...bundles][0] ?? defaultBundle) : checkBundle(given),
    named: given !== undefined || bundles.size > 0,
    definitions: [...definitions.values()].map(({ definition }) => definition),
    items,
    problems,
  };
}

/** Returns the alarm rules and hooks of all files, and adds a problem for each that is in two of them. */
function itemsOf(reads: readonly ReadFile[], problems: FileProblem[]): TasksRead["items"] {
  const items: TasksRead["items"] = { alarm: [], hook: [] };
  const places = new Map<string, string>();
  for (const { file, items: some } of reads) {
    for (const { line, ...one } of some) {
      const { item, name } = one;
      const path = `${itemParts[item]}.${name}`;
      const before = places.get(path);
      if (before === undefined) {
        places.set(path, line === null ? file : `${file}:${line}`);
        items[item].push(one);
        continue;
      }
      const message = `the ${itemWords[item]} ${name} is in ${before} already`;
      problems.push({ file, line, path, code: "FILE_INVALID", message, hint: "Leave out one of the two." });
    }
  }
  return items;
}

async function readOne(file: string): Promise<ReadFile> {
  if (!/\.[cm]?[jt]s$/.test(file))
    return readYaml(file, textOfFile(file, "Give the path of a YAML file, or of a module."));
  try {
    return readTasks(file, await loadTasksModule(file));
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    const { code, message, hint } = error;
    return {
      file,
      bundle: null,
      tasks: [],
      items: [],
      problems: [{ file, line: null, path: "", code, message, hint }],
    };
  }
}

/** Returns the text of a file; "-" means standard input. @throws FILE_INVALID */
export function textOfFile(file: string, hint: string): string {
  try {
    const size = file === "-" ? 0 : statSync(file).size;
    if (size > limits.taskFileBytes) throw new Error(`it has ${size} bytes, more than ${limits.taskFileBytes}`);
    const text = readFileSync(file === "-" ? 0 : file, "utf8");
    if (text.length > limits.taskFileBytes) throw new Error(`it has more than ${limits.taskFileBytes} bytes`);
    return text;
  } catch (cause) {
    throw new CarillonError("FILE_INVALID", `${file} cannot be read: ${messageOf(cause)}`, { hint, cause });
  }
}

export function tellProblems(problems: readonly FileProblem[], terminal: Terminal): void {
  if (terminal.json) {
    terminal.object({ problems });
    return;
  }
  const { errorStyle: style } = terminal;
  for (const { file, line, path, code, message, hint } of problems) {
    const where = `${plain(file)}:${line === null ? "" : `${line}:`}`;
    process.stderr.write(
      `${style.bad(`${where} ${code}:`)} ${path === "" ? "" : `${plain(path)}: `}${plain(message)}\n`,
    );
    if (hint !== "") process.stderr.write(`  ${style.dim("hint:")} ${plain(hint)}\n`);
  }
}
