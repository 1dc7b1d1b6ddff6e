/**
 * Converts crontabs to tasks. This module is the importer's only entry point: it takes text, and returns task definitions, problems and
 * notes. A task behaves as cron does where Carillon can: two restricted day fields mean either of them, clock changes follow cron's rule,
 * the command gets the variables set above its line, and text after % becomes its standard input. docs/tasks/crontab.md lists the
 * differences.
 */

import { CarillonError } from "../../base/errors.ts";
import { cron, type ScheduleSpec } from "../../schedule/schedule.ts";
import { zoneName } from "../../schedule/zone.ts";
import { isShellName, whyRefused } from "../../task/command-rules.ts";
import type { CommandSpec } from "../../task/task.ts";
import { refuse } from "./fields.ts";
import { type CrontabFormat, detectFormat, formatOfPlace, seemsAccount, spoolAccount } from "./format.ts";
import { namePrefix, nameTasks } from "./names.ts";
import { type CrontabEntry, type CrontabNote, type CrontabProblem, parseCrontab, problemOf } from "./parse.ts";
import { splitCommand } from "./shell-words.ts";

export type { CrontabFormat } from "./format.ts";
export type { CrontabNote, CrontabProblem } from "./parse.ts";

export interface CrontabFile {
  /** Used to determine the format and the tasks' names; the importer does not open this file. */
  path: string;
  text: string;
}

export interface CrontabOptions {
  /** The time zone of entries without CRON_TZ. It should be the zone of the machine that the crontab comes from. */
  zone: string;
  /** Default: determined by the file's path, else by its content. */
  format?: CrontabFormat;
  /** True: an entry that needs a shell is imported as the command `SHELL -c …`. Default false: such an entry is reported as a problem. */
  shell?: boolean;
  /** The prefix of the tasks' names; default: the file's name. */
  prefix?: string;
  /** Account names, besides the built-in list, that mark an entry as an entry of a system crontab. */
  accounts?: readonly string[];
}

/** A task made from one entry: `defineTask(name, { schedule, command, description })` accepts the first four fields. */
export interface ImportedTask {
  name: string;
  schedule: ScheduleSpec;
  command: CommandSpec;
  description: string;
  /** The entry's line, from 1. */
  line: number;
  /** True if the command needs a shell. The worker's settings must then permit shell commands. */
  needsShell: boolean;
}

export interface ImportedCrontab {
  format: CrontabFormat;
  tasks: ImportedTask[];
  problems: CrontabProblem[];
  notes: CrontabNote[];
}

/**
 * Imports one crontab. Invalid content does not throw, but is returned in `problems`.
 * @throws ZONE_UNKNOWN if `options.zone` is unknown
 */
export function importCrontab(file: CrontabFile, options: CrontabOptions): ImportedCrontab {
  const zone = zoneName(options.zone);
  const format = options.format ?? detectFormat(file.path, file.text, options.accounts);
  const prefix = namePrefix(options.prefix ?? file.path);
  const { entries, problems, notes } = parseCrontab(file.text, { format, seed: prefix });
  // The format was guessed from the entries. The guess can be wrong, because a program may have the same name as an account.
  const guessed = options.format === undefined && formatOfPlace(file.path) === null;
  if (guessed && format === "system") {
    const users = [...new Set(entries.map(({ user }) => user))].slice(0, 5).join(", ");
    notes.push({
      line: entries[0]?.line ?? 1,
      message: `taken for a system's crontab, whose sixth field is an account (${users}); if these are programs, say --user`,
    });
  }
  const owner = format === "user" ? spoolAccount(file.path) : null;

  const read: { entry: CrontabEntry; task: Omit<ImportedTask, "name"> }[] = [];
  const around = { file, zone, owner, guessed, shell: options.shell ?? false, notes, asked: new Set<string>() };
  for (const entry of entries) {
    try {
      read.push({ entry, task: taskOf(entry, around) });
    } catch (error) {
      if (!(error instanceof CarillonError)) throw error;
      problems.push(problemOf(entry.line, entry.text, error));
    }
  }
  // Names are made from all entries, including those with problems, so that permitting shell commands later renames no imported task.
  const names = nameTasks(
    prefix,
    entries.map(({ command, time, user }) => ({ command, identity: `${time.expression}\n${user ?? ""}\n${command}` })),
  );
  const nameOf = new Map(entries.map((entry, at) => [entry, names[at] as string]));
  return {
    format,
    tasks: read.map(({ entry, task }) => ({ name: nameOf.get(entry) as string, ...task })),
    problems: problems.sort((a, b) => a.line - b.line),
    notes: notes.sort((a, b) => a.line - b.line),
  };
}

const sourceOf = (path: string): string => `${path}: `;

/**
 * True if the task was imported from this file with this prefix. Tasks with another prefix are excluded, because they may come from another
 * machine whose crontab has the same path.
 */
export function isOfCrontab(task: Pick<ImportedTask, "name" | "description">, path: string, prefix = path): boolean {
  const first = namePrefix(prefix);
  const rest = task.name.startsWith(first) ? task.name.slice(first.length) : null;
  return rest !== null && /^(?:$|[-.])/.test(rest) && task.description.startsWith(sourceOf(path));
}

interface Surroundings {
  file: CrontabFile;
  zone: string;
  owner: string | null;
  /** True if the format was guessed, because neither the file's path nor the caller determines it. */
  guessed: boolean;
  shell: boolean;
  notes: CrontabNote[];
  /** The variables for which a note has already been added. */
  asked: Set<string>;
}

/** @throws CRONTAB_INVALID if the entry's fields suggest another format, so that the time or the program would be wrong */
function checkFields({ user, command }: CrontabEntry, guessed: boolean): void {
  const [sixth = ""] = [user ?? command.split(/\s/, 1)[0]];
  if (/^(?:\*|\d)[\d*,/-]*$/.test(sixth))
    throw refuse(
      "it has six or seven time fields, and cron's have five",
      "Where the first is seconds, as supercronic and others write them, leave it out; a task's own cron can have seconds.",
    );
  const account = guessed && user === undefined ? seemsAccount(command) : undefined;
  if (account !== undefined)
    throw refuse(
      `${account} before the program looks like an account`,
      `Say --system if this is a system's crontab, --user if ${account} is a program.`,
    );
}

function taskOf(entry: CrontabEntry, around: Surroundings): Omit<ImportedTask, "name"> {
  checkFields(entry, around.guessed);
  const { argv, env, needsShell } = commandOf(entry, around);
  const user = entry.user ?? around.owner;
  const home = entry.env.HOME;
  const command: CommandSpec = {
    argv,
    ...(Object.keys(env).length === 0 ? {} : { env }),
    // Cron starts a command in its account's home directory. Only the machine that runs the command can resolve `~`.
    cwd: home?.startsWith("/") ? home : "~",
    ...(entry.stdin === undefined ? {} : { stdin: entry.stdin }),
    ...(user === null ? {} : { user }),
  };
  // Cron's rule for clock changes: entries with a star in the minute or hour follow elapsed time; all others run once, late if necessary.
  const schedule = cron(entry.time.expression, {
    zone: entry.zone ?? around.zone,
    gap: entry.time.wildcard ? "skip" : "shift",
    overlap: entry.time.wildcard ? "both" : "first",
    ...(entry.randomDelayMinutes === 0 ? {} : { jitter: entry.randomDelayMinutes * 60_000 }),
  });
  const description = `${sourceOf(around.file.path)}${entry.text.trim()}`;
  return { schedule, command, description, line: entry.line, needsShell };
}

/** The shells whose word-splitting rules `splitCommand` implements. */
const posixShells = new Set(["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"]);

function commandOf(entry: CrontabEntry, { shell, notes, asked }: Surroundings) {
  const shellPath = entry.env.SHELL ?? "/bin/sh";
  const shellName = shellPath.slice(shellPath.lastIndexOf("/") + 1);
  const split = posixShells.has(shellName) ? splitCommand(entry.command) : { needsShell: `SHELL=${shellPath}` };
  if ("argv" in split) {
    const { argv, comment } = split;
    const env = { ...entry.env, ...split.env };
    for (const name of refusedVariables(argv, env)) {
      if (asked.has(name)) continue;
      asked.add(name);
      notes.push({
        line: entry.line,
        message: `a worker passes ${name} on only where it is allowed: --allow-env ${name}`,
      });
    }
    if (comment !== "")
      notes.push({ line: entry.line, message: `not passed on, it is a comment to the shell: # ${comment}` });
    return { argv, env, needsShell: false };
  }
  if (!shell) {
    throw refuse(
      `the command needs a shell: it has ${split.needsShell}`,
      "With --shell these entries become /bin/sh -c …, which a worker has to allow (--shell); --output FILE lets you look at them first. Or put each into a script.",
    );
  }
  if (!shellPath.startsWith("/")) {
    throw refuse(`SHELL is ${JSON.stringify(shellPath)}, which is not an absolute path`, "Write SHELL=/bin/sh.");
  }
  return { argv: [shellPath, "-c", entry.command], env: entry.env, needsShell: true };
}

/**
 * Returns the variables that a worker passes to a program only if the worker's operator permits them. The list is empty for a shell,
 * because a shell receives these variables anyway.
 */
function refusedVariables([program = ""]: readonly string[], env: Record<string, string>): string[] {
  if (isShellName(program)) return [];
  return Object.keys(env).filter((name) => whyRefused(name, env[name] as string) !== undefined);
}
