import { Option } from "commander";
import { liveStates, outcomes, runSources } from "../../run/run.ts";
import { late } from "../late.ts";
import type { BulkOptions } from "../runs/operations.ts";
import {
  acting,
  bulkOptions,
  labelOption,
  namedOr,
  runNumber,
  tasksOptions,
  timesOptions,
} from "./operation-commands.ts";
import { type CommandParts, collectRunLabel, wholeNumber } from "./parts.ts";

const showRun = late(() => import("../runs/run-card.ts"), "showRun");
const cancelRuns = late(() => import("../runs/runs.ts"), "cancelRuns");
const listRuns = late(() => import("../runs/runs.ts"), "listRuns");
const tailRuns = late(() => import("../runs/runs.ts"), "tailRuns");
const decideRun = late(() => import("../runs/decide-runs.ts"), "decideRun");
const rerunRuns = late(() => import("../runs/runs.ts"), "rerunRuns");

export function addRuns({ add, family, doing, terminal }: CommandParts): void {
  const runs = family("runs", "See what runs, ran and failed, follow it, and cancel it.");
  add(
    runs,
    "list",
    "List what runs, what is overdue, and what ended last.",
    "carillon runs list --state failed --since 1d",
  )
    .option("--task <NAME>", "only runs of this task")
    .addOption(new Option("--state <STATE...>", "only runs in these states").choices([...liveStates, ...outcomes]))
    .option("--since <DURATION>", "only runs that ended (or were due) in the last while, such as 2h")
    .option("--group <NAME>", "only runs of the tasks of this group")
    .option("--namespace <NAME>", "only runs of the tasks in this namespace")
    .option("--key <KEY>", "only runs with this key; with --task")
    .addOption(new Option("--source <SOURCE>", "only runs that came to be so").choices([...runSources]))
    .option("--label <NAME=TEXT>", "only runs with this label; may be repeated", collectRunLabel)
    .option("-n, --limit <N>", "at most this many", wholeNumber(1, 10_000), 20)
    .action(doing((_, options: Parameters<typeof listRuns>[0]) => listRuns(options, terminal)));
  add(
    runs,
    "show <run>",
    "Show how one run went: due, claimed, started, ended, its attempts and its log.",
    "carillon runs show 42",
  )
    .option("--logs <N>", "at most this many lines of its log", wholeNumber(0, 100_000), 200)
    .action(doing(([run = ""], options: Parameters<typeof showRun>[1]) => showRun(runNumber(run), options, terminal)));
  add(runs, "tail", "Print runs as they end, a line each.", "carillon runs tail --follow --task heartbeat")
    .option("-f, --follow", "go on until Ctrl-C")
    .option("--task <NAME>", "only runs of this task")
    .option("-n, --limit <N>", "begin with this many that ended before", wholeNumber(0, 10_000), 10)
    .action(doing((_, options: Parameters<typeof tailRuns>[0]) => tailRuns(options, terminal)));
  bulkOptions(
    add(
      runs,
      "cancel [run...]",
      "Cancel runs: one that waits never starts, one that runs is told to stop.",
      "carillon runs cancel 42 43",
    ),
    "runs",
  )
    .option("--reason <TEXT>", "why, for those who look at the run later")
    .action(
      doing(
        namedOr("cancel", terminal, (runs, options: BulkOptions) => cancelRuns(runs.map(runNumber), options, terminal)),
      ),
    );
  acting(
    timesOptions(
      labelOption(
        tasksOptions(
          add(
            runs,
            "rerun [run...]",
            "Run ended runs again, by number or by filter: new runs with their payloads, keys and slots.",
            "carillon runs rerun --task settle-accounts --state failed --since 1d",
          ).option("--task <NAME>", "runs of this task"),
        ),
      ).addOption(new Option("--state <STATE...>", "runs that ended so (default: failed)").choices([...outcomes])),
    ),
  )
    .option("--reason <TEXT>", "why, for those who look at the operation later")
    .action(doing(namedOr("rerun", terminal, (runs, options) => rerunRuns(runs.map(runNumber), options, terminal))));
  add(
    runs,
    "decide <run> <retry|fail>",
    "Decide what becomes of a run whose worker was lost, where its task asks: run it again, or give it up.",
    'carillon runs decide 42 fail --reason "the ledger shows it"',
  )
    .option("--reason <TEXT>", "why, for those who look at the run later")
    .action(doing(([run = "", how = ""], options) => decideRun(runNumber(run), how, options, terminal)));
}
