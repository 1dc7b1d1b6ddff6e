import { type Command, InvalidArgumentError } from "commander";
import { addAlarms } from "./alarm-commands.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { imports as importsThere } from "./imports.ts";
import { late } from "./late.ts";
import type { CommandParts } from "./operation-commands.ts";

const applyFiles = late(() => import("./apply.ts"), "applyFiles");
const cronWords = late(() => import("./cron-words.ts"), "cronWords");
const exportTasks = late(() => import("./export.ts"), "exportTasks");
const importTasks = late(() => import("./import-tasks.ts"), "importTasks");
const simulateTasks = late(() => import("./simulate.ts"), "simulateTasks");

const onlyPlans = (command: Command, args: string[]) =>
  command.name() === "diff" || (command.name() === "apply" && args.includes("--plan"));

/** A script must be able to tell what is wrong with its files from what is to be done. */
export const tellsChanges = (command: Command, args: string[], code: ExitCode): ExitCode =>
  code === exitCodes.usage && onlyPlans(command, args) ? exitCodes.failed : code;

export function addFileCommands({
  add,
  doing,
  program,
  terminal,
}: Pick<CommandParts, "add" | "doing" | "terminal"> & { program: Command }): void {
  addForesight({ add, doing, program, terminal });
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
      "Make the cluster's tasks what files say: YAML, or modules that export tasks. Shows the plan first.",
      `carillon apply tasks.yaml --prune --reason "month's end moves"`,
    ),
  )
    .option("--plan", "only show the plan; exit with 2 when there is something to do")
    .option("--expect-plan <ID>", "refuse unless the plan is this one, as diff has shown it")
    .option("--reason <TEXT>", "why, for those who look at the tasks later")
    .option(
      "--author <NAME>",
      "whom the change is put down to (default: this user, on this machine; by a server always the token's user)",
    )
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

const collect = (value: string, before: string[] = []) => [...before, value];
const whole = (text: string) => {
  if (!/^\d{1,7}$/.test(text)) throw new InvalidArgumentError("Give a whole number.");
  return Number(text);
};

function addForesight({
  add,
  doing,
  program,
  terminal,
}: Pick<CommandParts, "add" | "doing" | "terminal"> & { program: Command }): void {
  addAlarms({ add, doing, program, terminal });
  add(
    program,
    "simulate [file...]",
    "Show what would fire in a time, of stored tasks or of files: collisions, and changes of clocks.",
    "carillon simulate --from 2027-03-27T00:00:00Z --to 2027-03-29T00:00:00Z",
  )
    .option("--from <TIME>", "from here on, such as 2027-03-27T00:00:00Z (default: now)")
    .option("--to <TIME>", "up to here, and not it (default: a day after --from)")
    .option("--task <NAME>", "only this task; may be repeated", collect)
    .option("-n, --limit <N>", "list at most this many; all are counted", whole, 200)
    .action(
      doing(([files], options: Parameters<typeof simulateTasks>[1]) =>
        simulateTasks(files as unknown as string[], options, terminal),
      ),
    );
  add(
    program,
    "cron <words...>",
    "Turn words into a cron, and a cron into words, with what it means next.",
    'carillon cron "every weekday at 9:30" --zone Europe/Berlin',
  )
    .option("--zone <ZONE>", "where it counts, unless the words say (default: where this machine is)")
    .option("-n, --count <N>", "this many of the next slots", whole, 5)
    .action(
      doing(([words], options: Parameters<typeof cronWords>[1]) =>
        cronWords(words as unknown as string[], options, terminal),
      ),
    );
}

export function addImporters(
  { add, doing, terminal }: Pick<CommandParts, "add" | "doing" | "terminal">,
  imports: Command,
): void {
  for (const [kind, { what, example }] of Object.entries(importsThere)) {
    add(imports, `${kind} <file...>`, what, example)
      .option("--zone <ZONE>", "of crons that name none, such as Europe/Berlin: where the old scheduler runs")
      .option("--group <NAME>", "the workers that are to run the tasks")
      .option("--bundle <NAME>", "the bundle that the file names")
      .option("--output <FILE>", "write the file there instead of to standard output")
      .action(
        doing(([files], options: Parameters<typeof importTasks>[2]) =>
          importTasks(kind as keyof typeof importsThere, files as unknown as string[], options, terminal),
        ),
      );
  }
}
