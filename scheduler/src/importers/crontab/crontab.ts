/**
 * Crontab → tasks. The one entry for those who import: text in, task definitions, problems and notes out.
 *
 * A task keeps what cron would do where the two can agree: "either day field" where both are restricted, the clock-change
 * rule, the environment above the line, standard input after %. docs/crontab.md lists where they differ.
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
  /** Decides the format and the tasks' names; it is not opened. */
  path: string;
  text: string;
}

export interface CrontabOptions {
  /** The zone of entries without CRON_TZ: that of the machine whose crontab it is. */
  zone: string;
  /** Default: by the file's place, else by its content. */
  format?: CrontabFormat;
  /** Entries that need a shell become `SHELL -c …`. Default false: they are problems. */
  shell?: boolean;
  /** What the names begin with; default: the file's name. */
  prefix?: string;
  /** More account names by which to recognise a system crontab. */
  accounts?: readonly string[];
}

/** The first five are what `defineTask` takes: `defineTask(name, { schedule, command, description })`. */
export interface ImportedTask {
  name: string;
  schedule: ScheduleSpec;
  command: CommandSpec;
  description: string;
  /** Where it stands, from 1. */
  line: number;
  /** Its command is a shell's: the worker must allow the shell. */
  needsShell: boolean;
}

export interface ImportedCrontab {
  format: CrontabFormat;
  tasks: ImportedTask[];
  problems: CrontabProblem[];
  notes: CrontabNote[];
}

/** @throws ZONE_UNKNOWN for `options.zone`; everything in the text itself is a task, a problem or a note */
export function importCrontab(file: CrontabFile, options: CrontabOptions): ImportedCrontab {
  const zone = zoneName(options.zone);
  const format = options.format ?? detectFormat(file.path, file.text, options.accounts);
  const prefix = namePrefix(options.prefix ?? file.path);
  const { entries, problems, notes } = parseCrontab(file.text, { format, seed: prefix });
  // Nothing says it but the entries themselves, and a program may have an account's name.
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
  // From all entries, also those with problems: turning the shell on must not rename what was imported before.
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
 * Whether an import of this file, under this prefix, made the task. Under another it may be of another machine, whose crontab
 * has the same path.
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
  /** Neither the file's place nor the caller says which format it has. */
  guessed: boolean;
  shell: boolean;
  notes: CrontabNote[];
  /** Variables that a note was made of. */
  asked: Set<string>;
}

/** @throws CRONTAB_INVALID: it would be read as another time, or another program, than is meant */
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
    // Cron starts in the account's home; which folder that is, the machine that runs it knows.
    cwd: home?.startsWith("/") ? home : "~",
    ...(entry.stdin === undefined ? {} : { stdin: entry.stdin }),
    ...(user === null ? {} : { user }),
  };
  // Cron's rule for a change of clocks: tables with a star count elapsed time; others run once, late if need be.
  const schedule = cron(entry.time.expression, {
    zone: entry.zone ?? around.zone,
    gap: entry.time.wildcard ? "skip" : "shift",
    overlap: entry.time.wildcard ? "both" : "first",
    ...(entry.randomDelayMinutes === 0 ? {} : { jitter: entry.randomDelayMinutes * 60_000 }),
  });
  const description = `${sourceOf(around.file.path)}${entry.text.trim()}`;
  return { schedule, command, description, line: entry.line, needsShell };
}

/** Shells whose word rules `splitCommand` knows. */
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

/** Variables that a worker passes on to a program that is no shell only where its operator allows them. */
function refusedVariables([program = ""]: readonly string[], env: Record<string, string>): string[] {
  if (isShellName(program)) return [];
  return Object.keys(env).filter((name) => whyRefused(name, env[name] as string) !== undefined);
}
