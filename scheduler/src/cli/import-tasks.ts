import { importBullmq } from "../importers/bullmq.ts";
import type { Findings, ImportedTask, ImportOptions, Remark, SourceFile } from "../importers/findings.ts";
import { importKubernetes } from "../importers/kubernetes.ts";
import { importPgBoss } from "../importers/pg-boss.ts";
import { importQuartz } from "../importers/quartz.ts";
import { fromXxl } from "../importers/xxl-job.ts";
import { writeYaml } from "../task-files/write.ts";
import { zoneName } from "../zone.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { writeOut } from "./export.ts";
import type { imports } from "./imports.ts";
import { textOfFile } from "./read-tasks.ts";
import type { CommonOptions } from "./store-choice.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";
import { localZone } from "./times.ts";

type Importer = (files: readonly SourceFile[], options: ImportOptions) => Findings;

/** Where a cron's zone is not said: Kubernetes counts in UTC, the others where their machine is. */
const importers: Record<keyof typeof imports, { from: Importer; zone: () => string }> = {
  quartz: {
    from: importQuartz,
    zone: () => localZone().name,
  },
  "xxl-job": {
    from: fromXxl,
    zone: () => localZone().name,
  },
  kubernetes: {
    from: importKubernetes,
    zone: () => "UTC",
  },
  bullmq: {
    from: importBullmq,
    zone: () => localZone().name,
  },
  "pg-boss": {
    from: importPgBoss,
    zone: () => "UTC",
  },
};

export interface ImportFileOptions extends CommonOptions {
  zone?: string;
  group?: string;
  bundle?: string;
  output?: string;
}

/** Touches no store: what came of it is looked at, mended and applied. */
export async function importTasks(
  kind: keyof typeof imports,
  files: string[],
  options: ImportFileOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const { from, zone } = importers[kind];
  const sources = files.map((path) => ({
    path,
    text: textOfFile(path, `Give the path of what ${kind} exported, or - for standard input.`),
  }));
  const { tasks, remarks } = from(sources, { zone: zoneName(options.zone ?? zone()), group: options.group });
  return writeImported(kind, tasks, remarks, options, terminal);
}

/** The file to standard output or where it is wanted, the report beside it. Exit code 1: something was not imported. */
export function writeImported(
  kind: string,
  tasks: readonly ImportedTask[],
  remarks: readonly Remark[],
  { bundle, output }: Pick<ImportFileOptions, "bundle" | "output">,
  terminal: Terminal,
): ExitCode {
  const problems = remarks.filter((remark) => remark.kind === "problem").length;
  const exit = problems > 0 ? exitCodes.failed : exitCodes.ok;
  const above = `Imported from ${kind}. Look at what it says, then: carillon apply FILE`;
  const text = writeYaml(tasks, bundle ?? null, above);
  if (terminal.json) {
    if (output !== undefined && output !== "-") writeOut(text, output, terminal);
    terminal.object({ tasks: Object.fromEntries(tasks.map(({ name, written }) => [name, written])), remarks });
    return exit;
  }
  writeOut(text, output, terminal);
  const { errorStyle: style } = terminal;
  const paint = { problem: style.bad, lost: style.warning, note: style.dim };
  const words = { problem: "not imported", lost: "lost", note: "note" };
  const say = (line: string) => process.stderr.write(`${line}\n`);
  for (const level of ["note", "lost", "problem"] as const) {
    for (const { source, message, hint } of remarks.filter((remark) => remark.kind === level)) {
      say(`${paint[level](`${words[level]}:`)} ${source === "" ? "" : `${plain(source)}: `}${plain(message)}`);
      if (hint !== "") say(`  ${style.dim("hint:")} ${plain(hint)}`);
    }
  }
  const lost = remarks.filter((remark) => remark.kind === "lost").length;
  say(`${tasks.length} tasks, ${lost} things lost, ${problems} not imported`);
  return exit;
}
