import { type Command, InvalidArgumentError, Option } from "commander";
import { CarillonError } from "../../base/errors.ts";
import type { OperationKind } from "../../run/operations.ts";
import { liveStates } from "../../run/run.ts";
import type { ExitCode } from "../exit-codes.ts";
import { late } from "../late.ts";
import type { BulkOptions } from "../runs/operations.ts";
import type { Terminal } from "../screen/terminal.ts";
import type { CommonOptions } from "../store-choice.ts";
import { type CommandParts, collect, collectRunLabel } from "./parts.ts";

const listCalendars = late(() => import("../tasks/calendars.ts"), "listCalendars");
const removeCalendar = late(() => import("../tasks/calendars.ts"), "removeCalendar");
const setCalendar = late(() => import("../tasks/calendars.ts"), "setCalendar");
const showCalendar = late(() => import("../tasks/calendars.ts"), "showCalendar");
const listDead = late(() => import("../runs/dead.ts"), "listDead");
const showDead = late(() => import("../runs/dead.ts"), "showDead");
const beginOperation = late(() => import("../runs/operations.ts"), "beginOperation");
const listOperations = late(() => import("../runs/operations.ts"), "listOperations");
const showOperation = late(() => import("../runs/operations.ts"), "showOperation");
const stopOperation = late(() => import("../runs/operations.ts"), "stopOperation");
const waitForOperation = late(() => import("../runs/operations.ts"), "waitForOperation");

const whole = (text: string) => {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError("Give a whole number from 1 to 9999999.");
  return Number(text);
};
/** Matches the number of a run or an operation: a positive number of at most 15 digits, also with leading zeros. */
const counted = /^0*[1-9]\d{0,14}$/;
const operationNumber = (text: string): number => {
  if (counted.test(text)) return Number(text);
  throw new CarillonError("USAGE", `${JSON.stringify(text)} is not the number of an operation`, {
    hint: "See carillon operations list.",
  });
};

export function runNumber(text: string): number {
  if (!counted.test(text))
    throw new CarillonError("USAGE", `${JSON.stringify(text)} is not the number of a run`, {
      hint: "See carillon runs list.",
    });
  return Number(text);
}

export const tasksOptions = (command: Command): Command =>
  command
    .option("--matching <PATTERN>", "those whose names match, such as 'eu-*'")
    .option("--group <NAME>", "those of this group");

/** Adds the options of commands that act on many items. */
export const acting = (command: Command): Command =>
  command
    .option("--all", "everything, where nothing else is said")
    .option("--dry-run", "show what would be touched, and touch nothing")
    .option("--yes", "do not ask, however many are touched")
    .option("--wait", "carry it out, and wait for its end; exit with 1 unless all of it was done");

export const timesOptions = (command: Command): Command =>
  command
    .option("--since <TIME>", "at or after this time, or within such a span: 2027-03-27T00:00:00Z, 1d")
    .option("--until <TIME>", "at or before this time, or so long ago");

export const labelOption = (command: Command): Command =>
  command.option("--label <NAME=TEXT>", "those of runs with this label; may be repeated", collectRunLabel);

const letterOptions = (command: Command): Command =>
  timesOptions(
    labelOption(tasksOptions(command.option("--task <NAME>", "letters of this task"))).option(
      "--fingerprint <HEX>",
      "letters that failed for this reason",
    ),
  );

/** Adds the options with which `tasks pause`, `tasks resume` and `runs cancel` act on all items that match a filter. */
export function bulkOptions(command: Command, what: "tasks" | "runs"): Command {
  if (what === "tasks") return acting(tasksOptions(command));
  return acting(
    timesOptions(
      labelOption(tasksOptions(command.option("--task <NAME>", "runs of this task"))).addOption(
        new Option("--state <STATE...>", "runs in these states").choices([...liveStates]),
      ),
    ),
  );
}

/**
 * Returns true if no items are named, so that a filter selects them.
 * @throws USAGE if names are given together with filter options, --dry-run or --wait
 */
export function byFilter(names: unknown[], options: BulkOptions): boolean {
  const { task, matching, group, label, state, since, until, all, dryRun, wait } = options;
  const filtered = [task, matching, group, label, state, since, until, all].some((option) => option !== undefined);
  if (names.length === 0) return true;
  if (filtered)
    throw new CarillonError("USAGE", "names and a filter were given", {
      hint: "Give either what is meant, or a filter.",
    });
  if (dryRun || wait)
    throw new CarillonError("USAGE", `${dryRun ? "--dry-run" : "--wait"} goes with a filter, and names were given`, {
      hint: "What is named is done at once. Leave the option out, or give a filter such as --matching in the place of names.",
    });
  return false;
}

/** Returns a command that acts on the named items at once, or starts an operation if no items are named. */
export const namedOr =
  (kind: OperationKind, terminal: Terminal, work: (names: string[], options: BulkOptions) => Promise<ExitCode>) =>
  ([given]: string[], options: BulkOptions): Promise<ExitCode> => {
    const names = given as unknown as string[];
    return byFilter(names, options) ? beginOperation(kind, options, terminal) : work(names, options);
  };

/** Adds the options of the two commands that read the days of a calendar. */
const daysOptions = (command: Command, preset: { weekend: string; zone: string }): Command =>
  command
    .option("--strict", "refuse a file with a part that is not carried out; without this it is reported")
    .option("--days <LIST>", "such as 2026-12-25,2026-12-26")
    .option("--weekend <LIST>", `days of the week that are not worked (default: ${preset.weekend}; "" for none)`)
    .option("--zone <ZONE>", `where its days begin and end, such as Europe/Berlin (default: ${preset.zone})`)
    .option("--years <N>", "how far ahead an ICS file's rules are carried out", whole, 10);

export function addOperations({ add, family, doing, terminal }: CommandParts): void {
  const dead = family("dead", "See runs that failed for good, by what they failed of; run them again, or let them be.");
  letterOptions(
    add(dead, "list", "Count dead letters by reason.", "carillon dead list --task settle-accounts --since 1d"),
  ).action(doing((_, options: BulkOptions) => listDead(options, terminal)));
  add(dead, "show <fingerprint>", "Show one reason and its letters.", "carillon dead show 3f2a90cc11de")
    .option("-n, --limit <N>", "at most this many letters", whole, 20)
    .action(
      doing(([fingerprint = ""], options: CommonOptions & { limit: number }) =>
        showDead(fingerprint, options, terminal),
      ),
    );
  for (const [kind, summary] of [
    ["redrive", "Run dead letters again, each once: a new run with its payload, key and slot."],
    ["dismiss", "Take dead letters off the list; their runs stay in the history."],
  ] as const) {
    acting(letterOptions(add(dead, kind, summary, `carillon dead ${kind} --fingerprint 3f2a90cc11de`)))
      .option("--reason <TEXT>", "why, for those who look at the operation later")
      .action(doing((_, options: BulkOptions) => beginOperation(kind, options, terminal)));
  }

  const operations = family("operations", "See what acts on many tasks or runs, how far it is, and stop it.");
  add(operations, "list", "List operations, the newest first.", "carillon operations list")
    .option("-n, --limit <N>", "at most this many", whole, 20)
    .action(doing((_, options: CommonOptions & { limit: number }) => listOperations(options, terminal)));
  add(operations, "show <operation>", "Show how far one is.", "carillon operations show 7").action(
    doing(([id = ""], options) => showOperation(operationNumber(id), options, terminal)),
  );
  add(operations, "stop <operation>", "Stop one where it is; what it did stays.", "carillon operations stop 7").action(
    doing(([id = ""], options) => stopOperation(operationNumber(id), options, terminal)),
  );
  add(operations, "wait <operation>", "Carry one on from here until it ends.", "carillon operations wait 7").action(
    doing(([id = ""], options) => waitForOperation(operationNumber(id), options, terminal)),
  );

  const calendars = family("calendars", "Store the holidays and weekends that tasks go by.");
  daysOptions(
    add(
      calendars,
      "set <name>",
      "Store a calendar, or its next version; the tasks that use it are planned anew.",
      "carillon calendars set de --ics holidays.ics --days 2026-12-24 --weekend sat,sun --zone Europe/Berlin",
    ).option("--ics <FILE>", "the days that events of an iCalendar file touch; may be repeated", collect),
    { weekend: "sat,sun", zone: "this machine's" },
  )
    .option("--reason <TEXT>", "why, for those who look at the calendar later")
    .option("--yes", "do not ask, even if fewer than half of the coming holidays are left")
    .action(doing(([name = ""], options: Parameters<typeof setCalendar>[1]) => setCalendar(name, options, terminal)));
  add(calendars, "list", "List calendars and who uses them.", "carillon calendars list").action(
    doing((_, options) => listCalendars(options, terminal)),
  );
  daysOptions(
    add(calendars, "show <name>", "Show a calendar's days.", "carillon calendars show de --compare holidays.ics")
      .option("--version <N>", "as it was at this version", whole)
      .option(
        "--compare <FILE>",
        "show which days and slots would change if the calendar had the days of this iCalendar file; may be repeated",
        collect,
      ),
    { weekend: "the calendar's", zone: "the calendar's" },
  ).action(doing(([name = ""], options: Parameters<typeof showCalendar>[1]) => showCalendar(name, options, terminal)));
  add(calendars, "remove <name>", "Remove a calendar that no task uses.", "carillon calendars remove de").action(
    doing(([name = ""], options) => removeCalendar(name, options, terminal)),
  );
}
