import { isCarillonError } from "../../base/errors.ts";
import type { CalendarContent } from "../../schedule/calendar.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { askToGoOn, isWatched } from "../question.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText, localZone } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";
import {
  type GivenOptions,
  givenContent,
  noticesObject,
  readFiles,
  tellNotices,
  weekendText,
} from "./calendar-given.ts";
import { compareCalendar } from "./compare-calendar.ts";

export interface SetCalendarOptions extends GivenOptions {
  reason?: string;
  yes?: boolean;
}

export async function setCalendar(name: string, options: SetCalendarOptions, terminal: Terminal): Promise<ExitCode> {
  const files = await readFiles(options.ics);
  return withCluster(options, async ({ cluster: { calendars, nowMs }, signal }) => {
    const given = givenContent(files, options, { zone: localZone().name, weekend: [0, 6] }, nowMs());
    tellNotices(given, terminal);
    const named = { ...given.content, names: Object.fromEntries(given.names) };
    const set = (mayShrink: boolean) => calendars.set(name, named, options.reason ?? "", mayShrink);
    const stored = await set(options.yes ?? false).catch(async (error: unknown) => {
      if (!isCarillonError(error, "CALENDAR_SHRINKS") || terminal.json || !isWatched()) throw error;
      terminal.aside(plain(error.message));
      const answer = await askToGoOn(signal);
      return answer === "yes" ? set(true) : answer;
    });
    if (stored === "no" || stored === "interrupted") {
      terminal.aside("nothing was done");
      return stored === "no" ? exitCodes.failed : exitCodes.interrupted;
    }
    const { calendar, changed, tasks } = stored;
    if (terminal.json) terminal.object({ calendar, changed, tasks, ...noticesObject(given) });
    else if (!changed) terminal.line(`${plain(name)} is so already, at version ${calendar.version}`);
    else {
      terminal.line(`${plain(name)} is at version ${calendar.version}: ${contentText(calendar)}`);
      if (tasks.length > 0) terminal.line(`planned anew: ${plain(tasks.join(", "))}`);
    }
    return exitCodes.ok;
  });
}

function contentText({ holidays, weekend, zone }: CalendarContent): string {
  const span = holidays.length === 0 ? "" : `, ${holidays[0]} to ${holidays.at(-1)}`;
  return `${holidays.length} ${holidays.length === 1 ? "holiday" : "holidays"}${span}, ${weekendText(weekend)}, ${zone}`;
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

export interface ShowCalendarOptions extends Omit<GivenOptions, "ics"> {
  version?: number;
  compare?: string[];
}

export function showCalendar(name: string, options: ShowCalendarOptions, terminal: Terminal): Promise<ExitCode> {
  const { compare, ...given } = options;
  if (compare !== undefined) return compareCalendar(name, { ...given, ics: compare }, terminal);
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
