import { type Command, Option } from "commander";
import type { IfKeyTaken } from "../../run/enqueue-options.ts";
import type { StatisticsPeriod } from "../../task/statistics/statistics.ts";
import { late } from "../late.ts";
import type { BackfillOptions, BulkOptions } from "../runs/operations.ts";
import { partsToSet, scheduleOptionsToSet } from "../tasks/parts-to-set.ts";
import type { StatisticsOptions } from "../tasks/statistics.ts";
import { bulkOptions, byFilter, namedOr } from "./operation-commands.ts";
import { type CommandParts, collectPart, collectRunLabel, wholeNumber } from "./parts.ts";

const showTask = late(() => import("../tasks/task-card.ts"), "showTask");
const listTasks = late(() => import("../tasks/tasks.ts"), "listTasks");
const nextOfTask = late(() => import("../tasks/tasks.ts"), "nextOfTask");
const statisticsOfTask = late(() => import("../tasks/statistics.ts"), "statisticsOfTask");
const pauseTasks = late(() => import("../tasks/tasks.ts"), "pauseTasks");
const pauseByFilter = late(() => import("../runs/operations.ts"), "pauseByFilter");
const resumeTasks = late(() => import("../tasks/tasks.ts"), "resumeTasks");
const runTask = late(() => import("../tasks/tasks.ts"), "runTask");
const editTask = late(() => import("../tasks/edit-task.ts"), "editTask");
const scheduleTask = late(() => import("../tasks/schedule-task.ts"), "scheduleTask");
const unscheduleTask = late(() => import("../tasks/schedule-task.ts"), "unscheduleTask");
const revertTask = late(() => import("../tasks/edit-task.ts"), "revertTask");
const backfillTask = late(() => import("../runs/operations.ts"), "backfillTask");

// The values are repeated here, because importing them from the library would make every command start later.
const ifKeyTakens: IfKeyTaken[] = ["keep", "replace", "again"];
const periods: StatisticsPeriod[] = ["hour", "day", "month"];

export function addTasks({ add, family, doing, terminal }: CommandParts): void {
  const tasks = family("tasks", "See the tasks there are, when they fire next, and pause, resume or run them.");
  add(tasks, "list", "List all tasks with their schedules, next slots and counts.", "carillon tasks list")
    .option("--of <NAME>", "the schedules of this task, which are left out otherwise")
    .option("--owner <NAME>", "only tasks with this owner")
    .action(doing((_, options: Parameters<typeof listTasks>[0]) => listTasks(options, terminal)));
  add(
    tasks,
    "show <name>",
    "Show one task: its schedule and policies, next slots, last runs and versions.",
    "carillon tasks show settle-accounts",
  ).action(doing(([name = ""], options) => showTask(name, options, terminal)));
  add(
    tasks,
    "next <name>",
    "Show when a task fires next, and where a change of clocks has a say in it.",
    "carillon tasks next settle-accounts -n 50",
  )
    .option("-n, --count <N>", "this many slots", wholeNumber(1, 10_000), 20)
    .option("--after <TIME>", "after this time instead of now, such as 2027-03-27T00:00:00Z")
    .action(doing(([name = ""], options: Parameters<typeof nextOfTask>[1]) => nextOfTask(name, options, terminal)));
  add(
    tasks,
    "statistics <name>",
    "Show how many runs of a task ended, how long they took and how late they began.",
    "carillon tasks statistics settle-accounts --by day",
  )
    .addOption(new Option("--by <PERIOD>", "one line for each").choices(periods).default("day"))
    .option("--since <TIME>", "from this time on; default: two days of hours, thirty days or thirteen months")
    .action(doing(([name = ""], options: StatisticsOptions) => statisticsOfTask(name, options, terminal)));
  add(
    tasks,
    "run <name>",
    "Run a task now, beside its schedule.",
    `carillon tasks run settle-accounts --payload '{"ledger":"eu"}' --wait`,
  )
    .option("--payload <JSON>", "what its handler is given")
    .option("--label <NAME=TEXT>", "a label of the run; may be repeated", collectRunLabel)
    .option("--in <DURATION>", "start it this long from now, such as 10m")
    .option("--at <TIME>", "start it at this time, such as 2027-03-27T00:00:00Z")
    .option("--key <TEXT>", "at most one unfinished run of the task has this key")
    .addOption(new Option("--if-key-taken <WHAT>", "if a run has the key (default: keep)").choices(ifKeyTakens))
    .option("--unique-for <DURATION>", "with --key: for this long, no second run is made for the key")
    .option("--priority <N>", "0 to 9, higher first; default: the task's", wholeNumber(0, 9))
    .option("--wait", "wait for its end; exit with 1 unless it succeeds")
    .option("--timeout <DURATION>", "with --wait: wait at most this long, such as 5m")
    .action(doing(([name = ""], options: Parameters<typeof runTask>[1]) => runTask(name, options, terminal)));
  bulkOptions(
    add(
      tasks,
      "pause [name...]",
      "Stop firing tasks until they are resumed or a time comes; what runs goes on.",
      `carillon tasks pause settle-accounts --until 2027-03-27T06:00:00Z --reason "bank is closed"`,
    ),
    "tasks",
  )
    .option("--until <TIME>", "when they are resumed by themselves")
    .option("--reason <TEXT>", "why, for those who look at the task later")
    .action(
      doing(([given], { until, ...options }: BulkOptions) => {
        const names = given as unknown as string[];
        if (byFilter(names, options)) return pauseByFilter(options, until, terminal);
        return pauseTasks(names, { ...options, ...(until === undefined ? {} : { until }) }, terminal);
      }),
    );
  bulkOptions(
    add(
      tasks,
      "resume [name...]",
      "Let paused tasks fire again, from now on.",
      "carillon tasks resume settle-accounts",
    ),
    "tasks",
  )
    .option("--reason <TEXT>", "why, for those who look at the task later")
    .action(doing(namedOr("resume", terminal, (names, options: BulkOptions) => resumeTasks(names, options, terminal))));

  add(
    tasks,
    "edit <name>",
    "Change parts of a task by hand; the change stays when its code is started again.",
    `carillon tasks edit settle-accounts --set "schedule=0 3 * * *" --set timeout=3h --reason "month's end"`,
  )
    .option("--set <PART=VALUE>", `what to change, may be repeated: ${partsToSet}`, collectPart)
    .option("--reason <TEXT>", "why, for those who look at the task later")
    .option("--expect-version <N>", "refuse if the task is at another version by now", wholeNumber(1, 2 ** 31 - 1))
    .action(doing(([name = ""], options: Parameters<typeof editTask>[1]) => editTask(name, options, terminal)));
  add(
    tasks,
    "revert <name> [part...]",
    "Put back what the code (or an import) says of what was edited by hand.",
    "carillon tasks revert settle-accounts timeout",
  )
    .option("--reason <TEXT>", "why, for those who look at the task later")
    .option("--expect-version <N>", "refuse if the task is at another version by now", wholeNumber(1, 2 ** 31 - 1))
    .action(
      doing(([name = "", parts], options: Parameters<typeof editTask>[1]) =>
        revertTask(name, parts as unknown as string[], options, terminal),
      ),
    );
  addSchedules({ add, doing, terminal }, tasks);
  add(
    tasks,
    "backfill <name>",
    "Run the slots of a range of time that have no run.",
    "carillon tasks backfill settle-accounts --from 2027-03-01T00:00:00Z --to 2027-03-08T00:00:00Z --rate 10/s",
  )
    .requiredOption("--from <TIME>", "the first slot's time, or so long ago: 2027-03-01T00:00:00Z, 7d")
    .option("--to <TIME>", "the last slot's (default: now)")
    .option("--rate <N/SPAN>", "so many become due in such a span: 10/s, 100/m")
    .option("--reverse", "the newest first")
    .option("--missed", "also slots that the ledger tells as missed or skipped")
    .option("--dry-run", "show what would be run, and run nothing")
    .option("--yes", "do not ask, however many they are")
    .option("--wait", "wait until all runs are made")
    .option("--reason <TEXT>", "why, for those who look at the operation later")
    .action(doing(([name = ""], options: BackfillOptions) => backfillTask(name, options, terminal)));
}

function addSchedules(
  { add, doing, terminal }: Pick<CommandParts, "add" | "doing" | "terminal">,
  tasks: Command,
): void {
  add(
    tasks,
    "schedule <name> <schedule> <when>",
    "Give a task one more schedule, or change the one of this name; the task's handler has its runs.",
    `carillon tasks schedule send-digest tenant-7 "0 9 * * *" --zone Europe/Berlin --payload '{"tenant":7}'`,
  )
    .option("--zone <NAME>", "of its local times (default: UTC)")
    .option("--payload <JSON>", "what the handler is given with each of its runs")
    .option("--set <PART=VALUE>", `what else it says, may be repeated: ${scheduleOptionsToSet}`, collectPart)
    .option("--reason <TEXT>", "why, for those who look at the task later")
    .action(
      doing(([name = "", schedule = "", when = ""], options: Parameters<typeof scheduleTask>[1]) =>
        scheduleTask({ name, schedule, when }, options, terminal),
      ),
    );
  add(
    tasks,
    "unschedule <name> <schedule>",
    "Remove a schedule that was given to a task; what runs goes on.",
    "carillon tasks unschedule send-digest tenant-7",
  )
    .option("--reason <TEXT>", "why, for those who look for it later")
    .action(
      doing(([name = "", schedule = ""], options: Parameters<typeof unscheduleTask>[1]) =>
        unscheduleTask({ name, schedule }, options, terminal),
      ),
    );
}
