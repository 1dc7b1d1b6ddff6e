/** The output of an import: the file of tasks on standard output, and the result for each source on standard error. */
import { writeYaml } from "../../apply/write.ts";
import type { ImportedTask, Remark } from "../../importers/findings.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { writeOut } from "../tasks/export.ts";

export interface WrittenWhere {
  bundle?: string;
  output?: string;
}

export const importedText = (kind: string, tasks: readonly ImportedTask[], bundle: string | undefined) =>
  writeYaml(tasks, bundle ?? null, `Imported from ${kind}. Look at what it says, then: carillon apply FILE`);

/**
 * Writes the file of tasks to standard output or to the path of `--output`, and the report to standard error. With --json, writes one
 * object with the tasks and the remarks to standard output, and the file only to a path. Exit code 1 if something was not imported.
 */
export function writeImported(
  kind: string,
  tasks: readonly ImportedTask[],
  remarks: readonly Remark[],
  { bundle, output }: WrittenWhere,
  terminal: Terminal,
): ExitCode {
  const problems = remarks.filter((remark) => remark.kind === "problem").length;
  const exit = problems > 0 ? exitCodes.failed : exitCodes.ok;
  const text = importedText(kind, tasks, bundle);
  if (terminal.json) {
    if (output !== undefined && output !== "-") writeOut(text, output, terminal);
    terminal.object({ tasks: Object.fromEntries(tasks.map(({ name, written }) => [name, written])), remarks });
    return exit;
  }
  writeOut(text, output, terminal);
  tellRemarks(tasks.length, remarks, terminal);
  return exit;
}

/**
 * Prints the remarks to standard error. If several sources have the same remark, it is printed once with the names of the first of these
 * sources.
 */
export function tellRemarks(taskCount: number, remarks: readonly Remark[], terminal: Terminal): void {
  const { errorStyle: style } = terminal;
  const paint = { problem: style.bad, lost: style.warning, note: style.dim };
  const words = { problem: "not imported", lost: "lost", note: "note" };
  const say = (line: string) => process.stderr.write(`${line}\n`);
  for (const level of ["note", "lost", "problem"] as const) {
    const those = alike(remarks.filter(({ kind }) => kind === level));
    for (const [at, { message, hint, sources }] of those.entries()) {
      const rest = sources.length > namesMost ? ` and ${sources.length - namesMost} more` : "";
      const source = `${sources.slice(0, namesMost).join(", ")}${rest}`;
      say(`${paint[level](`${words[level]}:`)} ${source === "" ? "" : `${plain(source)}: `}${plain(message)}`);
      // If consecutive remarks have the same hint, the hint is printed once, after the last of these remarks.
      if (hint !== "" && hint !== those[at + 1]?.hint) say(`  ${style.dim("hint:")} ${plain(hint)}`);
    }
  }
  const count = (kind: Remark["kind"]) => remarks.filter((remark) => remark.kind === kind).length;
  say(`${taskCount} tasks, ${count("lost")} things lost, ${count("problem")} not imported`);
}

const namesMost = 5;

/** Groups remarks with the same message and hint, in the order of their first occurrence. */
function alike(remarks: readonly Remark[]): { message: string; hint: string; sources: string[] }[] {
  const groups = new Map<string, { message: string; hint: string; sources: string[] }>();
  for (const { source, message, hint } of remarks) {
    const key = `${message}\n${hint}`;
    const group = groups.get(key) ?? { message, hint, sources: [] };
    groups.set(key, group);
    group.sources.push(source);
  }
  return [...groups.values()];
}
