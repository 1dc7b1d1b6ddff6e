import { Argument, Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { CarillonError } from "../errors.ts";
import { liveStates, outcomes } from "../run.ts";
import { version } from "../version.ts";
import { addAccess } from "./access-commands.ts";
import type { ConfigFile } from "./config-file.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "./exit-codes.ts";
import { addFileCommands, addImporters, tellsChanges } from "./file-commands.ts";
import { late } from "./late.ts";
import { logLevels } from "./log-levels.ts";
import { addOperations, bulkOptions, namedOr, runNumber } from "./operation-commands.ts";
import type { BulkOptions } from "./operations.ts";
import { partsToSet } from "./parts-to-set.ts";
import { readBy, watchReaders } from "./readers.ts";
import { addSchemaCommands } from "./schema-commands.ts";
import { addSecrets } from "./secret-commands.ts";
import { addProfiles } from "./server-commands.ts";
import type { CommonOptions } from "./store-choice.ts";
import { Terminal } from "./terminal.ts";

const decideRun = late(() => import("./decide-runs.ts"), "decideRun");
const dev = late(() => import("./dev.ts"), "dev");
const doctor = late(() => import("./doctor.ts"), "doctor");
const editTask = late(() => import("./edit-task.ts"), "editTask");
const revertTask = late(() => import("./edit-task.ts"), "revertTask");
const importCrontabs = late(() => import("./import-crontab.ts"), "importCrontabs");
const serve = late(() => import("./node-commands.ts"), "serve");
const listNodes = late(() => import("./nodes.ts"), "listNodes");
const serveRemote = late(() => import("./remote-worker.ts"), "serveRemote");
const showRun = late(() => import("./run-card.ts"), "showRun");
const cancelRuns = late(() => import("./runs.ts"), "cancelRuns");
const listRuns = late(() => import("./runs.ts"), "listRuns");
const tailRuns = late(() => import("./runs.ts"), "tailRuns");
const showTask = late(() => import("./task-card.ts"), "showTask");
const listTasks = late(() => import("./tasks.ts"), "listTasks");
const nextOfTask = late(() => import("./tasks.ts"), "nextOfTask");
const pauseTasks = late(() => import("./tasks.ts"), "pauseTasks");
const resumeTasks = late(() => import("./tasks.ts"), "resumeTasks");
const runTask = late(() => import("./tasks.ts"), "runTask");

/** Carries out a command line. What went wrong has been said when this resolves. @returns the exit code */
export async function main(args: string[]): Promise<ExitCode> {
  // Known before anything is parsed, so that a wrong command line is told in the right form too.
  const asked = { json: args.includes("--json"), colour: !args.includes("--no-color") };
  const terminal = new Terminal(asked);
  watchReaders();
  let exit: ExitCode = exitCodes.ok;
  const program = commands(terminal, (code) => {
    exit = code;
  });
  const named = commandNamed(program, args);
  try {
    // What a shell asks while a line is typed: its words are another command's.
    if (args[0] === "__complete") return await (await import("./complete.ts")).complete(program, args.slice(1));
    await program.parseAsync(ownOptionsJoined(program, args), { from: "user" });
    return exit;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      terminal.failure(error);
      return tellsChanges(named, args, exitCodeOf(error));
    }
    if (error.code === "commander.helpDisplayed" || error.code === "commander.version") return exitCodes.ok;
    // A command that needs one more word has shown its help already.
    if (error.code !== "commander.help") terminal.failure(usageError(error, named));
    return tellsChanges(named, args, exitCodes.usage);
  }
}

/** The command that the words name, as far as they do. */
function commandNamed(program: Command, args: readonly string[]): Command {
  let command = program;
  for (const word of args) command = command.commands.find((one) => one.name() === word) ?? command;
  return command;
}

const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();

function usageError(error: CommanderError, command: Command): CarillonError {
  const [message = "", ...suggestion] = error.message.replace(/^error: /, "").split("\n");
  const more = `See ${pathOf(command)} --help.`;
  return new CarillonError("USAGE", message, {
    hint: [...suggestion.map((line) => line.replace(/^\((.*)\)$/, "$1")), more].join(" "),
  });
}

/**
 * The root takes its options from anywhere in the line. One that a command has too is the command's behind it, for which its
 * value must be joined to it: `calendars show de --version=2`.
 */
function ownOptionsJoined(program: Command, args: readonly string[]): string[] {
  const joined: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const [word = "", next] = [args[at], args[at + 1]];
    if (word === "--") return [...joined, ...args.slice(at)];
    const before = commandNamed(program, args.slice(0, at));
    const isRoots = program.options.some(({ long }) => long === word);
    const own = before === program ? undefined : before.options.find(({ long }) => long === word);
    if (!isRoots || !own?.required || next === undefined) joined.push(word);
    else {
      joined.push(`${word}=${next}`);
      at++;
    }
  }
  return joined;
}

type Handle = (code: ExitCode) => void;

/** All that can be said on a command line; nothing is carried out before it is parsed. Completion walks through it too. */
export function commands(terminal: Terminal, ended: Handle): Command {
  const program = new Command("carillon")
    .description(
      "Tasks that run on time and are accounted for: cron, intervals and delayed tasks across many machines.",
    )
    .version(version, "--version", "print the version")
    .helpOption("-h, --help", "show what a command does, with an example")
    .helpCommand(false)
    .option(
      "--store <URL>",
      "the PostgreSQL to use (else CARILLON_STORE, DATABASE_URL, or a private one in the directory)",
      notEmpty,
    )
    .option(
      "--server <URL>",
      "ask this server instead of a store (else CARILLON_SERVER; token: CARILLON_TOKEN)",
      collect,
    )
    .option("--profile <NAME>", "ask the server of this profile, made by carillon login (else CARILLON_PROFILE)")
    .option("--directory <PATH>", "where the private PostgreSQL keeps its data (default: .carillon)", notEmpty)
    .option("--schema <NAME>", "the PostgreSQL schema that holds everything (default: carillon)")
    .option("--config <FILE>", "settings of this project (default: carillon.config.yaml and the like in this folder)")
    .option("--json", "print JSON for programs instead of text for people")
    .option("--no-color", "use no colours (also: NO_COLOR=1)")
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .configureOutput({ outputError: () => undefined })
    .exitOverride();

  /** A command whose last argument is its options, the common ones among them. */
  const add = (parent: Command, usage: string, summary: string, example: string): Command =>
    parent.command(usage).description(summary).addHelpText("after", `\nExample:\n  $ ${example}`);
  const doing =
    <Options extends CommonOptions>(
      work: (args: string[], options: Options) => Promise<ExitCode>,
      { configured = true }: { configured?: boolean } = {},
    ) =>
    async (...given: unknown[]) => {
      const command = given.at(-1) as Command;
      const options = command.optsWithGlobals<Options & { config?: string; logLevel?: string; plan?: boolean }>();
      const file = configured ? await readConfigFile(options.config) : undefined;
      if (file) options.file = file;
      if (command.options.some(({ long }) => long === "--log-level"))
        options.logLevel ??= await chosenLogLevel(options.file);
      readBy(command.name(), options);
      ended(await work(command.processedArgs as string[], options));
    };
  const family = (name: string, summary: string): Command =>
    program.command(name).description(summary).helpCommand(false);

  const coordinationOption = (command: Command): Command =>
    command.option(
      "--coordination <URL>",
      "what else to coordinate by, zookeeper://host:2181/path (else CARILLON_COORDINATION, or the store alone)",
    );
  const nodeOptions = (command: Command, { scheduler, worker }: { scheduler: boolean; worker: boolean }): Command => {
    coordinationOption(command)
      .option("--fail-fast", "end when the store or the coordination service is away, instead of trying on")
      .option("--name <NAME>", "this process's name in the cluster (default: a made one)")
      .option("--address <HOST:PORT>", "where the others reach this process (else CARILLON_ADDRESS, or nowhere)")
      .option("--label <NAME=TEXT>", "what to know this process by in carillon nodes; may be repeated", collectLabel);
    if (scheduler) {
      command
        .option("--observer", "never lead, only step in where the leader left something out")
        .option("--listen <HOST:PORT>", "serve the HTTP API, and workers with a key, here (default: nowhere)")
        .option("--behind-proxy", "a proxy before it ends TLS, so it may listen where others reach it")
        .option("--provider <FILE>", "let an OpenID Connect provider sign people in, as this YAML file says");
    }
    command.option("--no-migrate", "refuse an older schema instead of migrating it: see carillon migrate");
    command.option("--alarms <FILE>", "tell of what goes wrong by webhook and mail, as this YAML file says");
    if (worker) {
      command
        .option("--group <NAME>", "serve the tasks of this group; may be repeated", collect)
        .option("--concurrency <N>", "run at most this many at once (default: 100)", wholeNumber(1, 10_000))
        .option("--allow <PROGRAM>", "let command tasks run this program; may be repeated", collect)
        .option("--shell", "let command tasks use an allowed shell")
        .option("--rehearse", "log what command tasks would run, and run nothing")
        .option("--allow-http <HOST>", "let HTTP tasks call this host or address range; may be repeated", collect);
    }
    return command.addOption(
      new Option("--log-level <LEVEL>", "say this and what is worse (default: info)").choices(logLevels),
    );
  };

  nodeOptions(
    add(program, "dev [file]", "Plan and run the tasks of a file here, and watch them fire.", "carillon dev tasks.ts"),
    { scheduler: true, worker: true },
  ).action(doing(([file], options: Parameters<typeof dev>[1]) => dev(file, options, terminal)));
  nodeOptions(
    add(
      program,
      "server",
      "Plan slots and look after the cluster, and leave the work to workers.",
      "carillon server --store postgres://db.example/app",
    ),
    { scheduler: true, worker: false },
  ).action(doing((_, options: Parameters<typeof serve>[2]) => serve("server", undefined, options, terminal)));
  nodeOptions(
    add(
      program,
      "worker [file]",
      "Run the tasks of a file, or stored commands, and leave the planning to others.",
      "carillon worker tasks.ts --concurrency 20",
    ),
    { scheduler: false, worker: true },
  )
    .option(
      "--key <KEY>",
      "with --server, which may be repeated: the worker key (else CARILLON_WORKER_KEY, which others do not see)",
    )
    .action(
      doing(([file], options: Parameters<typeof serveRemote>[1]) =>
        options.server ? serveRemote(file, options, terminal) : serve("worker", file, options, terminal),
      ),
    );

  const tasks = family("tasks", "See the tasks there are, when they fire next, and pause, resume or run them.");
  add(tasks, "list", "List all tasks with their schedules, next slots and counts.", "carillon tasks list").action(
    doing((_, options) => listTasks(options, terminal)),
  );
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
    "run <name>",
    "Run a task now, beside its schedule.",
    `carillon tasks run settle-accounts --payload '{"ledger":"eu"}' --wait`,
  )
    .option("--payload <JSON>", "what its handler is given")
    .option("--wait", "wait for its end; exit with 1 unless it succeeds")
    .option("--timeout <DURATION>", "with --wait: wait at most this long, such as 5m")
    .action(doing(([name = ""], options: Parameters<typeof runTask>[1]) => runTask(name, options, terminal)));
  bulkOptions(
    add(
      tasks,
      "pause [name...]",
      "Stop firing tasks until they are resumed; what runs goes on.",
      `carillon tasks pause settle-accounts --reason "bank is closed"`,
    ),
    "tasks",
  )
    .option("--reason <TEXT>", "why, for those who look at the task later")
    .action(doing(namedOr("pause", terminal, (names, options: BulkOptions) => pauseTasks(names, options, terminal))));
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
  addOperations({ add, family, doing, tasks, runs, terminal });
  addFileCommands({ add, doing, program, terminal });

  add(
    runs,
    "decide <run> <retry|fail>",
    "Decide what becomes of a run whose worker was lost, where its task asks: run it again, or give it up.",
    'carillon runs decide 42 fail --reason "the ledger shows it"',
  )
    .option("--reason <TEXT>", "why, for those who look at the run later")
    .action(doing(([run = "", how = ""], options) => decideRun(runNumber(run), how, options, terminal)));

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
    .action(doing(([files], options) => importCrontabs(files as unknown as string[], options, terminal)));

  addImporters({ add, doing, terminal }, imports);

  addAccess({ add, family, doing, terminal });
  addProfiles({ add, family, doing, program, terminal });

  addSecrets({ add, family, doing, terminal });
  addSchemaCommands({ add, doing, program, terminal });

  coordinationOption(
    add(
      program,
      "doctor",
      "Look for what is wrong with this machine, the store and the cluster, and say what to do.",
      "carillon doctor --store postgres://db.example/app",
    ),
  ).action(doing((_, options: Parameters<typeof doctor>[0]) => doctor(options, terminal)));
  add(program, "nodes", "See who takes part, who leads, and why leadership changed.", "carillon nodes")
    .option("--terms <N>", "the last terms of leadership", wholeNumber(0, 1_000), 10)
    .action(doing((_, options: Parameters<typeof listNodes>[0]) => listNodes(options, terminal)));

  return program;
}

/** Without a file, nothing of what reads one is loaded. */
async function readConfigFile(named: string | undefined): Promise<ConfigFile | undefined> {
  const { readConfig } = await import("./config-file.ts");
  return readConfig(named, process.env);
}

async function chosenLogLevel(file: ConfigFile | undefined): Promise<string> {
  const level = process.env.CARILLON_LOG_LEVEL || (file?.values.logLevel as string | undefined) || "info";
  if ((logLevels as readonly string[]).includes(level)) return level;
  throw new CarillonError("CONFIG_INVALID", `logLevel cannot be ${JSON.stringify(level)}`, {
    hint: `Give ${logLevels.join(", ")}. carillon config check says where it came from.`,
  });
}

const collect = (value: string, before: string[] = []) => [...before, value];

/** A variable of a script that is not set would be another cluster than the one that was meant. */
const notEmpty = (text: string): string => {
  if (text !== "") return text;
  throw new InvalidArgumentError("It is empty: say which, or leave the option out.");
};

const collectPairs =
  (example: string) =>
  (text: string, before: [string, string][] = []): [string, string][] => {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name === undefined || value === undefined)
      throw new InvalidArgumentError(`Give name=text, such as ${example}.`);
    return [...before, [name, value]];
  };
const collectLabel = collectPairs("zone=eu-1");
const collectPart = collectPairs("timeout=5m");

const wholeNumber = (least: number, most: number) => (text: string) => {
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < least || number > most)
    throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}.`);
  return number;
};
