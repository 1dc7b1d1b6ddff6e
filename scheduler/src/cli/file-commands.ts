import type { Command } from "commander";
import { applyFiles } from "./apply.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { exportTasks } from "./export.ts";
import { importers, importTasks } from "./import-tasks.ts";
import type { CommandParts } from "./operation-commands.ts";

const onlyPlans = (args: string[]) => args.includes("diff") || (args.includes("apply") && args.includes("--plan"));

/** A script must be able to tell what is wrong with its files from what is to be done. */
export const tellsChanges = (args: string[], code: ExitCode): ExitCode =>
  code === exitCodes.usage && onlyPlans(args) ? exitCodes.failed : code;

export function addFileCommands({
  add,
  doing,
  program,
  terminal,
}: Pick<CommandParts, "add" | "doing" | "terminal"> & { program: Command }): void {
  const planning = (command: Command): Command =>
    command
      .option("--bundle <NAME>", "under which the files' tasks are kept (default: what the files say, or default)")
      .option("--prune", "remove tasks of the bundle that the files do not have any more")
      .option("--adopt", "take over tasks that are there and belong to no bundle")
      .option("--overwrite-edits", "put back what was edited by hand since the last apply");
  planning(
    add(
      program,
      "apply <file...>",
      "Make the store's tasks what files say: YAML, or modules that export tasks. Shows the plan first.",
      `carillon apply tasks.yaml --prune --reason "month's end moves"`,
    ),
  )
    .option("--plan", "only show the plan; exit with 2 when there is something to do")
    .option("--expect-plan <ID>", "refuse unless the plan is this one, as diff has shown it")
    .option("--reason <TEXT>", "why, for those who look at the tasks later")
    .option("--author <NAME>", "whom the change is put down to (default: this user, on this machine)")
    .option("--yes", "do not ask")
    .action(
      doing(([files], options: Parameters<typeof applyFiles>[1]) =>
        applyFiles(files as unknown as string[], options, terminal),
      ),
    );
  planning(
    add(
      program,
      "diff <file...>",
      "Show what apply would do, field by field, and what was edited by hand; exit with 2 when there is something to do.",
      "carillon diff tasks.yaml --prune",
    ),
  ).action(
    doing(([files], options: Parameters<typeof applyFiles>[1]) =>
      applyFiles(files as unknown as string[], { ...options, plan: true }, terminal),
    ),
  );
  add(
    program,
    "export [name...]",
    "Write tasks as a file that apply reads.",
    "carillon export --group reports > reports.yaml",
  )
    .option("--group <NAME>", "those of this group")
    .option("--bundle <NAME>", "those of this bundle")
    .option("--output <FILE>", "write it there instead of to standard output")
    .action(
      doing(([names], options: Parameters<typeof exportTasks>[1]) =>
        exportTasks(names as unknown as string[], options, terminal),
      ),
    );
}

export function addImporters(
  { add, doing, terminal }: Pick<CommandParts, "add" | "doing" | "terminal">,
  imports: Command,
): void {
  for (const [kind, { what, example }] of Object.entries(importers)) {
    add(imports, `${kind} <file...>`, what, example)
      .option("--zone <ZONE>", "of crons that name none, such as Europe/Berlin: where the old scheduler runs")
      .option("--group <NAME>", "the workers that are to run the tasks")
      .option("--bundle <NAME>", "the bundle that the file names")
      .option("--output <FILE>", "write the file there instead of to standard output")
      .action(
        doing(([files], options: Parameters<typeof importTasks>[2]) =>
          importTasks(kind, files as unknown as string[], options, terminal),
        ),
      );
  }
}
