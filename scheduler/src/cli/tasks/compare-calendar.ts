/** `calendars show NAME --compare FILE`: the changes that a new version of a calendar would cause, before it is stored. */
import type { comparisonObject } from "../../api/calendar-json.ts";
import { type Zone, zoneOf } from "../../schedule/zone.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { timeText } from "../screen/times.ts";
import {
  type GivenOptions,
  givenContent,
  noticesObject,
  readFiles,
  tellNotices,
  weekendText,
} from "./calendar-given.ts";

type Comparison = ReturnType<typeof comparisonObject>;
type Slot = Comparison["tasks"][number]["slots"][number];

const daysShown = 20;
const slotsShown = 10;

export async function compareCalendar(name: string, options: GivenOptions, terminal: Terminal): Promise<ExitCode> {
  const files = await readFiles(options.ics);
  return withCluster(options, async ({ cluster: { calendars, nowMs } }) => {
    const given = givenContent(files, options, await calendars.find(name), nowMs());
    tellNotices(given, terminal);
    const compared = await calendars.compare(name, given.content);
    const named = ({ day, name: known }: Comparison["added"][number]) => ({ day, name: given.names.get(day) ?? known });
    const found = { ...compared, added: compared.added.map(named), removed: compared.removed.map(named) };
    if (terminal.json) terminal.object({ ...found, ...noticesObject(given) });
    else print(found, terminal);
    return exitCodes.ok;
  });
}

function print({ name, version, was, is, added, removed, shrinks, tasks, tasksLeft }: Comparison, terminal: Terminal) {
  const { style } = terminal;
  const row = (title: string, text: string) =>
    terminal.line(`  ${style.dim(title.padEnd(9))} ${plain(text)}`.trimEnd());
  terminal.line(`${style.title(plain(name))}  ${style.dim(`version ${version}, and what is compared with it`)}`);
  terminal.line();
  row("days", `${was.coming} coming holidays, would be ${is.coming}`);
  for (const [title, of] of [
    ["weekend", (side: typeof was) => weekendText(side.weekend)],
    ["zone", (side: typeof was) => side.zone],
  ] as const)
    if (of(was) !== of(is)) row(title, `${of(was)}, would be ${of(is)}`);
  for (const [title, days] of [
    ["added", added],
    ["removed", removed],
  ] as const) {
    for (const [at, { day, name: called }] of days.slice(0, daysShown).entries())
      row(at === 0 ? title : "", `${dayWords(day)}${called === null ? "" : `  ${called}`}`);
    if (days.length > daysShown) row("", `and ${days.length - daysShown} more`);
  }
  const zone = zoneOf(is.zone);
  for (const { task, total, more, slots } of tasks) {
    row("task", `${task}: ${more ? "at least " : ""}${total} ${total === 1 ? "slot" : "slots"} of a year ahead`);
    for (const slot of slots.slice(0, slotsShown)) row("", slotWords(slot, zone));
    if (total > Math.min(slots.length, slotsShown)) row("", `and ${total - Math.min(slots.length, slotsShown)} more`);
  }
  if (tasks.length === 0) row("tasks", "no slot changes");
  if (tasksLeft > 0) row("tasks", `${tasksLeft} more use it, and were not looked at`);
  if (shrinks)
    terminal.aside("fewer than half of the coming holidays would be left: calendars set asks first, or needs --yes");
}

const dayWords = (day: string): string =>
  `${day} ${["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][new Date(`${day}T00:00:00Z`).getUTCDay()]}`;

/** Describes how a calendar change moves a slot: first its due time or note before the change, then those after it. */
function slotWords({ slot, was, is }: Slot, zone: Zone): string {
  const time = (text: string) => timeText(Date.parse(text), zone);
  const side = ({ slot: at, due, note }: Slot["is"]) => {
    if (due === null) return note;
    if (at === slot && due === slot) return "at its own time";
    return due === at ? `moved to ${time(at)}` : `at ${time(due)} (${note})`;
  };
  return `${time(slot)}: ${side(was)} → ${side(is)}`;
}
