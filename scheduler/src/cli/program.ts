import { Command, CommanderError } from "commander";
import { CarillonError } from "../base/errors.ts";
import { version } from "../base/version.ts";
import { addAccess } from "./commands/access-commands.ts";
import { addAudit } from "./commands/audit-commands.ts";
import { addCluster } from "./commands/cluster-commands.ts";
import { addFileCommands, addImporters, tellsChanges } from "./commands/file-commands.ts";
import { addHooks } from "./commands/hook-commands.ts";
import { addOperations } from "./commands/operation-commands.ts";
import { type CommandParts, collect, notEmpty } from "./commands/parts.ts";
import { addProcesses } from "./commands/process-commands.ts";
import { addRuns } from "./commands/run-commands.ts";
import { addSchemaCommands } from "./commands/schema-commands.ts";
import { addSecrets } from "./commands/secret-commands.ts";
import { addProfiles } from "./commands/server-commands.ts";
import { addTasks } from "./commands/task-commands.ts";
import { addTokens } from "./commands/token-commands.ts";
import type { ConfigFile } from "./config/config-file.ts";
import { logLevels } from "./config/log-levels.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "./exit-codes.ts";
import { readBy, watchReaders } from "./readers.ts";
import { Terminal } from "./screen/terminal.ts";
import type { CommonOptions } from "./store-choice.ts";

/** Printed if `carillon` is called without arguments, in place of the list of all commands. */
const firstSteps = [
  "carillon needs a command. To begin with:",
  "carillon dev FILE      run the tasks of a file on this machine, with a private PostgreSQL",
  "carillon server        plan tasks for a cluster, and serve its API and console",
  "carillon --help        all commands; carillon COMMAND --help shows an example of each",
  "The package's README.md has a first task.",
];

/** Executes a command line. Does not reject: errors are printed before the promise resolves. @returns the exit code */
export async function main(args: string[]): Promise<ExitCode> {
  // --json is read before the line is parsed, so that a parse error is also printed as JSON if --json was given.
  const asked = { json: args.includes("--json"), colour: !args.includes("--no-color") };
  const terminal = new Terminal(asked);
  watchReaders(terminal);
  if (args.length === 0) {
    for (const line of firstSteps) terminal.aside(line);
    return exitCodes.usage;
  }
  let exit: ExitCode = exitCodes.ok;
  const program = commands(terminal, (code) => {
    exit = code;
  });
  const named = commandNamed(program, args);
  try {
    // The shell requests completions: the remaining arguments are the incomplete command line, so they are not parsed here.
    if (args[0] === "__complete") return await (await import("./complete.ts")).complete(program, args.slice(1));
    await program.parseAsync(ownOptionsJoined(program, args), { from: "user" });
    return exit;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      terminal.failure(error);
      return tellsChanges(named, args, exitCodeOf(error));
    }
    if (error.code === "commander.helpDisplayed" || error.code === "commander.version") return exitCodes.ok;
    // A parent command without its subcommand: commander has already printed the help.
    if (error.code !== "commander.help") terminal.failure(usageError(error, named));
    return tellsChanges(named, args, exitCodes.usage);
  }
}

/** The innermost subcommand that the arguments name. */
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
 * The root command accepts its options anywhere in the line. If a subcommand has an option of the same name, the option after that
 * subcommand belongs to the subcommand; commander then needs the value joined to the option: `calendars show de --version=2`.
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

/** Builds the tree of all commands and options, without executing any. Shell completion reads the same tree. */
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

  /** Adds a subcommand with its summary, and an example at the end of its help. */
  const add: CommandParts["add"] = (parent, usage, summary, example, how = {}) =>
    parent.command(usage, how).description(summary).addHelpText("after", `\nExample:\n  $ ${example}`);
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
      try {
        ended(await work(command.processedArgs as string[], options));
      } catch (error) {
        const { withNearName } = await import("./near-names.ts");
        throw await withNearName(error, command.args, options);
      }
    };
  const family = (name: string, summary: string): Command =>
    program.command(name).description(summary).helpCommand(false);

  const parts: CommandParts = { program, add, family, doing, terminal };
  addProcesses(parts);
  addTasks(parts);
  addRuns(parts);
  addOperations(parts);
  addFileCommands(parts);
  addImporters(parts);
  addAccess(parts);
  addTokens(parts);
  addProfiles(parts);
  addSecrets(parts);
  addHooks(parts);
  addAudit(parts);
  addSchemaCommands(parts);
  addCluster(parts);
  return program;
}

/** Imports the parser only when it is called, so that commands that read no configuration file do not load it. */
async function readConfigFile(named: string | undefined): Promise<ConfigFile | undefined> {
  const { readConfig } = await import("./config/config-file.ts");
  return readConfig(named, process.env);
}

async function chosenLogLevel(file: ConfigFile | undefined): Promise<string> {
  const level = process.env.CARILLON_LOG_LEVEL || (file?.values.logLevel as string | undefined) || "info";
  if ((logLevels as readonly string[]).includes(level)) return level;
  throw new CarillonError("CONFIG_INVALID", `logLevel cannot be ${JSON.stringify(level)}`, {
    hint: `Give ${logLevels.join(", ")}. carillon config check says where it came from.`,
  });
}
