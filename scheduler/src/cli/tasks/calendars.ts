import { readFile } from "node:fs/promises";
import { CarillonError, messageOf } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { type CalendarContent, dayMs, weekdayOf } from "../../schedule/calendar.ts";
import { type IcsWindow, readIcs } from "../../schedule/ics/ics.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText, localZone } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

export interface SetCalendarOptions extends CommonOptions {
  ics?: string[];
  strict?: boolean;
  days?: string;
  weekend?: string;
  zone?: string;
  years: number;
  reason?: string;
}

const weekdayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const words = (text: string) => text.split(",").flatMap((word) => (word.trim() === "" ? [] : [word.trim()]));

export async function setCalendar(name: string, options: SetCalendarOptions, terminal: Terminal): Promise<ExitCode> {
  const files = await Promise.all((options.ics ?? []).map(async (path) => ({ path, text: await textOf(path) })));
  return withCluster(options, async ({ cluster: { calendars, nowMs } }) => {
    const zone = options.zone ?? localZone().name;
    const today = Math.floor(nowMs() / dayMs);
    // What is past explains itself in the ledger; a little of it is kept for backfills.
    const window = { fromDay: today - 366, toDay: today + Math.ceil(options.years * 365.25), zone };
    const read = files.map((file) => ({ file: file.path, ...readFileOf(file, window, options.strict) }));
    const content: CalendarContent = {
      zone,
      weekend: options.weekend === undefined ? [0, 6] : words(options.weekend).map(weekdayOf),
      holidays: [...words(options.days ?? ""), ...read.flatMap(({ days }) => days)],
    };
    const { calendar, changed, tasks } = await calendars.set(name, content, options.reason ?? "");
    const notices = read.flatMap(({ file, notices }) => notices.map((notice) => ({ file, ...notice })));
    for (const { file, line, message } of notices) terminal.aside(`${plain(file)}:${line}: ${plain(message)}`);
    if (terminal.json) terminal.object({ calendar, changed, tasks, ...(files.length === 0 ? {} : { notices }) });
    else if (!changed) terminal.line(`${plain(name)} is so already, at version ${calendar.version}`);
    else {
      terminal.line(`${plain(name)} is at version ${calendar.version}: ${contentText(calendar)}`);
      if (tasks.length > 0) terminal.line(`planned anew: ${plain(tasks.join(", "))}`);
    }
    return exitCodes.ok;
  });
}

/** An error says in which file it is. */
function readFileOf({ path, text }: { path: string; text: string }, window: IcsWindow, isStrict?: boolean) {
  try {
    return readIcs(text, window, isStrict);
  } catch (cause) {
    if (!(cause instanceof CarillonError)) throw cause;
    throw new CarillonError(cause.code, `${path}: ${cause.message}`, { hint: cause.hint, cause });
  }
}

async function textOf(path: string): Promise<string> {
  try {
    const bytes = await readFile(path);
    if (bytes.length <= limits.icsBytes) return bytes.toString("utf8");
  } catch (cause) {
    throw new CarillonError("FILE_INVALID", `cannot read ${path}: ${messageOf(cause)}`, { cause });
  }
  throw new CarillonError("CALENDAR_INVALID", `${path} is larger than ${limits.icsBytes} bytes`, {
    hint: "Leave out what is long past.",
  });
}

function contentText({ holidays, weekend, zone }: CalendarContent): string {
  const free = weekend.length === 0 ? "no weekend" : `weekend ${weekend.map((day) => weekdayNames[day]).join(", ")}`;
  const span = holidays.length === 0 ? "" : `, ${holidays[0]} to ${holidays.at(-1)}`;
  return `${holidays.length} ${holidays.length === 1 ? "holiday" : "holidays"}${span}, ${free}, ${zone}`;
}

export function listCalendars(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster: { place, nowMs, ...cluster } }) => {
    const calendars = await cluster.calendars.list();
    if (terminal.json) {
      terminal.object(
        calendars.map(({ changedMs, ...rest }) => ({ ...rest, changed: new Date(changedMs).toISOString() })),
      );
    } else if (calendars.length === 0) terminal.aside(`No calendars in ${place} yet: carillon calendars set NAME`);
    else
      terminal.table(
        [
          { title: "CALENDAR", least: 8 },
          { title: "VERSION", align: "right" },
          { title: "CHANGED", drop: 2 },
          { title: "DAYS", least: 12 },
          { title: "TASKS", least: 8, drop: 1 },
        ],
        calendars.map((one) => [
          plain(one.name),
          String(one.version),
          ageText(one.changedMs, nowMs()),
          contentText(one),
          plain(one.tasks.join(", ")),
        ]),
      );
    return exitCodes.ok;
  });
}

export function showCalendar(
  name: string,
  options: CommonOptions & { version?: number },
  terminal: Terminal,
): Promise<ExitCode> {
  return withCluster(options, async ({ cluster: { calendars, nowMs } }) => {
    const calendar = await calendars.find(name, options.version);
    const { changedMs, ...rest } = calendar;
    if (terminal.json) {
      terminal.object({ ...rest, changed: new Date(changedMs).toISOString() });
      return exitCodes.ok;
    }
    const { style } = terminal;
    const row = (title: string, text: string) => {
      if (text !== "") terminal.line(`  ${style.dim(title.padEnd(9))} ${plain(text)}`);
    };
    terminal.line(`${style.title(plain(name))}  ${style.dim(`version ${calendar.version}`)}`);
    terminal.line();
    row("days", contentText(calendar));
    row("changed", `${ageText(changedMs, nowMs())} by ${calendar.author}`);
    row("why", calendar.reason);
    row("tasks", calendar.tasks.join(", ") || "none uses it");
    for (const year of new Set(calendar.holidays.map((day) => day.slice(0, 4)))) {
      const days = calendar.holidays.filter((day) => day.startsWith(year));
      row(year, days.map((day) => day.slice(5)).join(" "));
    }
    return exitCodes.ok;
  });
}

export function removeCalendar(name: string, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    await cluster.calendars.remove(name);
    if (terminal.json) terminal.object({ calendar: name, removed: true });
    else terminal.line(`${plain(name)} is removed`);
    return exitCodes.ok;
  });
}
