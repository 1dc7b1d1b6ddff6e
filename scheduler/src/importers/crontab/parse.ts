/**
 * Converts crontab text to entries and problems. Each line that is neither blank nor a comment is an entry, an environment setting, or a
 * problem. Notes tell the user where Carillon differs from cron. The code uses no files, clock or random numbers.
 */
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { zoneName } from "../../schedule/zone.ts";
import { readEnvironment } from "./environment.ts";
import { readNickname, readTimeFields, refuse, type TimeFields } from "./fields.ts";
import type { CrontabFormat } from "./format.ts";
import { splitPercent } from "./percent.ts";
import { textHash } from "./text-hash.ts";

/** A line that could not be imported, and why. */
export interface CrontabProblem {
  /** The line's number, from 1. */
  line: number;
  text: string;
  code: "CRONTAB_INVALID";
  message: string;
  hint: string;
}

/** Information for the user about how an entry, a setting or the file was read. */
export interface CrontabNote {
  line: number;
  message: string;
}

export interface CrontabEntry {
  line: number;
  text: string;
  time: TimeFields;
  /** The account, from the sixth field of the system format. */
  user?: string;
  command: string;
  stdin?: string;
  /** The variables set above this line. */
  env: Record<string, string>;
  /** The value of CRON_TZ above this line, spelt as in the time zone database. */
  zone?: string;
  /** The value of RANDOM_DELAY, a setting of cronie. */
  randomDelayMinutes: number;
}

export interface ParsedCrontab {
  entries: CrontabEntry[];
  problems: CrontabProblem[];
  notes: CrontabNote[];
}

/** The settings made by the lines above the current line. */
interface Settings {
  env: Record<string, string>;
  zone?: string;
  /** The line of an invalid CRON_TZ. The entries after it are problems, because their times are unknown. */
  badZoneLine?: number;
  randomDelayMinutes: number;
}

/**
 * Settings for cron's mail, and variables that a crontab cannot set. They are not passed to the command; the values are the texts
 * of the notes about them.
 */
const unusedSettings = new Map([
  ["MAILTO", "no mail is sent: output goes to the run's log, and a failure to the run's state"],
  ["MAILFROM", "no mail is sent"],
  ["CONTENT_TYPE", "no mail is sent"],
  ["CONTENT_TRANSFER_ENCODING", "no mail is sent"],
  ["LOGNAME", "cron does not let a crontab set it either"],
  ["USER", "cron does not let a crontab set it either"],
]);

export function parseCrontab(text: string, options: { format: CrontabFormat; seed: string }): ParsedCrontab {
  const problems: CrontabProblem[] = [];
  const notes: CrontabNote[] = [];
  const entries: CrontabEntry[] = [];
  const tooLong = Buffer.byteLength(text) > limits.crontabBytes;
  if (tooLong) {
    const found = refuse(`the file is larger than ${limits.crontabBytes} bytes`, "Is it a crontab? If so, split it.");
    return { entries, problems: [problemOf(1, text.slice(0, 80), found)], notes };
  }

  // The object has no prototype, so that no variable name can collide with an inherited property.
  const settings: Settings = { env: Object.create(null) as Record<string, string>, randomDelayMinutes: 0 };
  const lines = text.replace(/^\uFEFF/, "").split("\n");
  if (text.includes("\r\n")) {
    notes.push({ line: 1, message: "lines end in CR LF; cron would hand the CR to the commands, here it is left out" });
  }
  for (const [index, raw] of lines.entries()) {
    const line = index + 1;
    const content = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
    if (/^\s*(?:#|$)/.test(content)) continue;
    try {
      const setting = checkedLine(content);
      if (setting !== null) apply(setting, settings, line, notes);
      else entries.push(readEntry(content, line, settings, options, notes));
    } catch (error) {
      if (!(error instanceof CarillonError)) throw error;
      problems.push(problemOf(line, content, error));
    }
    if (line === lines.length) {
      notes.push({ line, message: "the last line has no newline: cron would not read it, here it is read" });
    }
  }
  return { entries, problems, notes };
}

export function problemOf(line: number, text: string, error: CarillonError): CrontabProblem {
  return { line, text: text.slice(0, 1000), code: "CRONTAB_INVALID", message: error.message, hint: error.hint };
}

function checkedLine(content: string) {
  if (content.length > limits.crontabLineLength) {
    throw refuse(`the line is longer than ${limits.crontabLineLength} characters`, "Put the command into a script.");
  }
  if (content.includes("\0")) throw refuse("the line contains a NUL character", "Is the file a crontab, in UTF-8?");
  return readEnvironment(content);
}

function apply(setting: { name: string; value: string }, settings: Settings, line: number, notes: CrontabNote[]): void {
  const { name, value } = setting;
  const unused = unusedSettings.get(name);
  if (unused !== undefined) {
    notes.push({ line, message: `${name} is not carried over: ${unused}` });
    return;
  }
  if (name === "CRON_TZ") {
    // After an invalid CRON_TZ, entries are reported as problems until a valid CRON_TZ follows: otherwise tasks would run at wrong hours.
    settings.zone = undefined;
    settings.badZoneLine = value === "" ? undefined : line;
    if (value !== "") settings.zone = zoneName(value.replace(/^:/, ""));
    settings.badZoneLine = undefined;
    return;
  }
  if (name === "RANDOM_DELAY") {
    if (!/^\d{1,4}$/.test(value) || Number(value) > 1440) {
      throw refuse(`RANDOM_DELAY is ${JSON.stringify(value)}, not minutes`, "Give 0 to 1440.");
    }
    settings.randomDelayMinutes = Number(value);
    notes.push({ line, message: `RANDOM_DELAY becomes a jitter of up to ${value} minutes, fixed for each slot` });
    return;
  }
  if (name === "TZ") {
    notes.push({ line, message: "TZ is the commands' zone only; the time fields follow CRON_TZ, as in cron" });
  }
  settings.env[name] = value;
}

const fiveFields = /^(\S+)[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)(?:[ \t]+(.*))?$/s;

function readEntry(
  content: string,
  line: number,
  settings: Settings,
  options: { format: CrontabFormat; seed: string },
  notes: CrontabNote[],
): CrontabEntry {
  let text = content.replace(/^\s+/, "");
  const silent = /^-(?=[\d*@~])/.test(text);
  if (silent) text = text.slice(1);

  let rest: string;
  let readTime: () => TimeFields;
  if (text.startsWith("@")) {
    const found = /^(\S+)(?:[ \t]+(.*))?$/s.exec(text) as RegExpExecArray;
    rest = found[2] ?? "";
    readTime = () => readNickname(found[1] as string);
  } else {
    const found = fiveFields.exec(text);
    if (found === null) {
      throw refuse(
        "this is neither an entry nor a setting: five time fields and a command are expected",
        "Write: minute hour day-of-month month day-of-week command; or NAME = value.",
      );
    }
    rest = found[6] ?? "";
    const seed = `${options.seed}\n${rest}`;
    readTime = () => readTimeFields(found.slice(1, 6), (field, n) => textHash(`${seed}\n${field}`) % n);
  }
  const time = readTime();
  if (settings.badZoneLine !== undefined) {
    throw refuse(
      `its CRON_TZ, on line ${settings.badZoneLine}, is not a zone, so its time is not known`,
      "Mend that line and import again.",
    );
  }

  const account = options.format === "system" ? takeAccount(rest) : { rest };
  const { command, stdin } = splitPercent(account.rest);
  if (command.trim() === "") throw refuse("there is no command", "Write a command after the time fields.");
  if (/^-[nqs]+\s/.test(command)) {
    throw refuse(
      `the command begins with ${command.split(/\s/)[0]}, a flag of BSD's cron`,
      "Remove the flag. For -s (one at a time) set the task's overlap to skip.",
    );
  }
  if (silent) notes.push({ line, message: "the leading - (no system log) has no effect: runs are always recorded" });
  for (const choice of time.chosen) notes.push({ line, message: `chosen once and for all: ${choice}` });
  return {
    line,
    text: content,
    time,
    ...(account.user === undefined ? {} : { user: account.user }),
    command,
    ...(stdin === undefined ? {} : { stdin }),
    env: { ...settings.env },
    ...(settings.zone === undefined ? {} : { zone: settings.zone }),
    randomDelayMinutes: settings.randomDelayMinutes,
  };
}

function takeAccount(rest: string): { user?: string; rest: string } {
  const found = /^(\S+)(?:[ \t]+(.*))?$/s.exec(rest);
  if (found === null) throw refuse("there is no account and no command", "A system crontab has both after the times.");
  const user = found[1] as string;
  if (!/^[A-Za-z_][\w.-]{0,63}\$?$/.test(user)) {
    throw refuse(
      `${JSON.stringify(user.slice(0, 60))} stands where a system crontab names the account, and is none`,
      "If the file is a user's crontab, which has no such field, import it as one (--user).",
    );
  }
  return { user, rest: found[2] ?? "" };
}
