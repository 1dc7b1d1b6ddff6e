import { Argument, type Command, InvalidArgumentError, Option } from "commander";
import { type ExitCode, exitCodes, unknownExit } from "../exit-codes.ts";
import { imports as importsThere } from "../files/imports.ts";
import { late } from "../late.ts";
import { addAlarms } from "./alarm-commands.ts";
import { type CommandParts, collect } from "./parts.ts";

const applyFiles = late(() => import("../files/apply.ts"), "applyFiles");
const cronWords = late(() => import("../tasks/cron-words.ts"), "cronWords");
const importCrontabs = late(() => import("../files/import-crontab.ts"), "importCrontabs");
const exportTasks = late(() => import("../tasks/export.ts"), "exportTasks");
const importTasks = late(() => import("../files/import-tasks.ts"), "importTasks");
const simulateTasks = late(() => import("../tasks/simulate.ts"), "simulateTasks");

const onlyPlans = (command: Command, args: string[]) =>
  command.name() === "diff" || (command.name() === "apply" && args.includes("--plan"));

const isMonitor = (command: Command) => command.name() === "check" && command.parent?.parent === null;

/**
 * Returns the exit code for a failed command. A command that only plans gives `failed` instead of `usage`, whose code 2 means pending
 * changes; `check` gives the code with which monitors report an unknown state.
 */
export const tellsChanges = (command: Command, args: string[], code: ExitCode): ExitCode => {
  if (isMonitor(command)) return unknownExit;
  return code === exitCodes.usage && onlyPlans(command, args) ? exitCodes.failed : code;
};

export function addFileCommands({
  add,
  doing,
  program,
  terminal,
}: Pick<CommandParts, "add" | "doing" | "terminal" | "program">): void {
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

const whole = (text: string) => {
  if (!/^\d{1,7}$/.test(text)) throw new InvalidArgumentError("Give a whole number.");
  return Number(text);
};

function addForesight({
  add,
  doing,
  program,
  terminal,
}: Pick<CommandParts, "add" | "doing" | "terminal" | "program">): void {
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
    "Turn words into a cron, a cron or a recurrence rule into words, with what it means next.",
    'carillon cron "every weekday at 9:30" --zone Europe/Berlin',
  )
    .option("--zone <ZONE>", "where it counts, unless the words say (default: where this machine is)")
    .option("--name <TASK>", "the task whose cron has an H, as Jenkins writes it")
    .option("-n, --count <N>", "this many of the next slots", whole, 5)
    .action(
      doing(([words], options: Parameters<typeof cronWords>[1]) =>
        cronWords(words as unknown as string[], options, terminal),
      ),
    );
}

const comparing =
  "show the next 20 times of source and task side by side in place of the file (exit code 1: they differ)";

export function addImporters({ add, family, doing, terminal }: CommandParts): void {
  const imports = family("import", "Turn what another scheduler has into tasks.");
  add(
    imports,
    "crontab",
    "Turn crontabs into tasks that run commands.",
    "carillon import crontab /etc/crontab /etc/cron.d/* --dry-run",
  )
    .addArgument(new Argument("<file...>", "crontabs, of a user or of the system"))
    .addOption(
      new Option("--system", "the sixth field is a user, as in /etc/crontab (default: by place and content)").conflicts(
        "user",
      ),
    )
    .addOption(new Option("--user", "there is no user field, as in crontab -l").conflicts("system"))
    .option("--zone <ZONE>", "where the crontabs' machine is, such as Europe/Berlin (default: where this one is)")
    .option("--shell", "import what needs a shell too, as a command of that shell")
    .option("--prefix <TEXT>", "what the tasks' names begin with (default: the file's name)")
    .option("--group <NAME>", "the workers that are to run them (default: default)")
    .option("--dry-run", "show what would be imported, and touch no store")
    .option("--output <FILE>", "write a file for carillon apply (-: standard output), and touch no store")
    .option("--bundle <NAME>", "with --output: the bundle that the file names")
    .option("--compare", comparing)
    .action(doing(([files], options) => importCrontabs(files as unknown as string[], options, terminal)));
  for (const [kind, { what, example }] of Object.entries(importsThere)) {
    add(imports, `${kind} <file...>`, what, example)
      .option("--zone <ZONE>", "of crons that name none, such as Europe/Berlin: where the old scheduler runs")
      .option("--group <NAME>", "the workers that are to run the tasks")
      .option("--bundle <NAME>", "the bundle that the file names")
      .option("--output <FILE>", "write the file there instead of to standard output")
      .option("--compare", comparing)
      .action(
        doing(([files], options: Parameters<typeof importTasks>[2]) =>
          importTasks(kind as keyof typeof importsThere, files as unknown as string[], options, terminal),
        ),
      );
  }
}
