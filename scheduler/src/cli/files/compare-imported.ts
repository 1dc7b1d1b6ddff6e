/** Implements `carillon import … --compare`: shows the next times of each source and of the task made from it side by side. */
import { CarillonError } from "../../base/errors.ts";
import { type ComparedTime, type Comparison, compareTask } from "../../importers/compare/compare.ts";
import type { ImportedTask, Remark } from "../../importers/findings.ts";
import { zoneOf } from "../../schedule/zone.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { timeText } from "../screen/times.ts";
import { writeOut } from "../tasks/export.ts";
import { importedText, tellRemarks, type WrittenWhere } from "./import-report.ts";

const comparedTimes = 20;

/**
 * Prints the times side by side instead of the file of tasks, which `--output` still writes. Exit code 1 if times differ or
 * something was not imported.
 */
export function compareImported(
  kind: string,
  { tasks, remarks }: { tasks: readonly ImportedTask[]; remarks: readonly Remark[] },
  nowMs: number,
  options: WrittenWhere,
  terminal: Terminal,
): ExitCode {
  if (options.output === "-")
    throw new CarillonError("USAGE", "--compare prints to standard output, and so does --output -", {
      hint: "Give --output a file, or leave it out.",
    });
  const { bundle, output } = options;
  if (output !== undefined) writeOut(importedText(kind, tasks, bundle), output, terminal);
  const compared = tasks.map((task) => compareTask(task, nowMs, comparedTimes));
  if (terminal.json) terminal.object({ compared, remarks });
  else {
    for (const one of compared) printComparison(one, terminal);
    tellRemarks(tasks.length, remarks, terminal);
    const count = (outcome: Comparison["outcome"]) => compared.filter((one) => one.outcome === outcome).length;
    terminal.line(
      `${count("same")} with the same times, ${count("differs")} that differ, ${count("not compared")} not compared`,
    );
  }
  const isGood =
    !remarks.some((remark) => remark.kind === "problem") && compared.every(({ outcome }) => outcome !== "differs");
  return isGood ? exitCodes.ok : exitCodes.failed;
}

function printComparison({ name, said, zone, times, outcome, note }: Comparison, terminal: Terminal): void {
  const { style } = terminal;
  const paint = { same: style.good, differs: style.bad, "not compared": style.warning }[outcome];
  terminal.line(`${plain(name)}: ${paint(outcome)}${said === "" ? "" : `  ${style.dim(plain(said))}`}`);
  if (note !== "") terminal.line(`  ${style.dim(plain(note))}`);
  const shown = zoneOf(zone);
  const cell = (ms: number | null) => (ms === null ? "–" : timeText(ms, shown));
  const mark = ({ state }: ComparedTime) =>
    state === "same" ? "" : { text: state, paint: state === "differs" ? style.bad : style.dim };
  if (times.length > 0)
    terminal.table(
      [{ title: "SOURCE" }, { title: "TASK" }, { title: "" }],
      times.map((one) => [cell(one.source), cell(one.task), mark(one)]),
      "  ",
    );
}
