/** Reads systemd's OnCalendar expressions as systemd.time(7) describes them. It shares no code with the importer of timers. */
import { ascending } from "./cron-reading.ts";
import { UnreadText } from "./source-times.ts";
import type { CivilDate, Reading } from "./walk.ts";

const names: Record<string, string> = {
  minutely: "*-*-* *:*:00",
  hourly: "*-*-* *:00:00",
  daily: "*-*-* 00:00:00",
  monthly: "*-*-01 00:00:00",
  weekly: "Mon *-*-* 00:00:00",
  yearly: "*-01-01 00:00:00",
  annually: "*-01-01 00:00:00",
  quarterly: "*-01,04,07,10-01 00:00:00",
  semiannually: "*-01,07-01 00:00:00",
};
const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/** @throws UnreadText for a text that this reader does not understand */
export function readOnCalendar(text: string): { reading: Reading; zone: string | undefined } {
  const words = text.trim().split(/\s+/);
  const zone =
    words.length > 1 && /^(?:UTC|[A-Z][A-Za-z_]+\/[\w+\-/]+)$/.test(words.at(-1) ?? "") ? words.pop() : undefined;
  const [first = ""] = words;
  const said = words.length === 1 && names[first.toLowerCase()];
  const parts = said ? said.split(" ") : words;
  let weekdays: ReadonlySet<number> | undefined;
  if (/^[a-z]/i.test(parts[0] ?? "")) weekdays = readWeekdays(parts.shift() as string);
  const time = parts.find((part) => part.includes(":")) ?? "00:00:00";
  const date = parts.find((part) => !part.includes(":")) ?? "*-*-*";
  if (parts.length > Number(parts.includes(time)) + Number(parts.includes(date)))
    throw new UnreadText(`${JSON.stringify(text)} is not understood`);
  const isDate = readDate(date);
  const [hours = "", minutes = "", seconds = "0"] = time.split(":");
  const within = (field: string, last: number) => ascending(valuesOf(field, 0, last));
  return {
    reading: {
      hours: within(hours, 23),
      minutes: within(minutes, 59),
      seconds: within(seconds, 59),
      isDay: (at) => (weekdays?.has(at.weekday) ?? true) && isDate(at),
    },
    zone,
  };
}

function readWeekdays(text: string): ReadonlySet<number> {
  const found = new Set<number>();
  const indexOf = (name: string) => {
    const at = days.indexOf(name.slice(0, 3).toLowerCase());
    if (at < 0) throw new UnreadText(`${JSON.stringify(name)} is no weekday`);
    return at;
  };
  for (const item of text.split(",").filter((part) => part !== "")) {
    const [from = "", to = from] = item.split(/\.\.|-/);
    for (let at = indexOf(from); ; at = (at + 1) % 7) {
      found.add(at);
      if (at === indexOf(to)) break;
    }
  }
  return found;
}

function readDate(text: string): (date: CivilDate) => boolean {
  const [, years = "*", months = "", sign = "", daysOfMonth = ""] =
    /^(?:([^-~]+)-)?([^-~]+)([-~])([^-~]+)$/.exec(text) ?? [];
  if (months === "") throw new UnreadText(`${JSON.stringify(text)} is no date`);
  const [inYears, inMonths] = [valuesOf(years, 1970, 2200), valuesOf(months, 1, 12)];
  const inDays = sign === "~" ? fromEnd(daysOfMonth) : valuesOf(daysOfMonth, 1, 31);
  return ({ year, month, day, last }) =>
    inYears.has(year) && inMonths.has(month) && inDays.has(sign === "~" ? last + 1 - day : day);
}

/** Returns the days, counted back from the end of the month. A step counts towards the month's end: ~07/1 means the last seven days. */
function fromEnd(text: string): ReadonlySet<number> {
  const found = new Set<number>();
  for (const item of text.split(",")) {
    const [, begin, step] = /^(\d+)(?:\/(\d+))?$/.exec(item) ?? [];
    if (begin === undefined) throw new UnreadText(`${JSON.stringify(item)} is no day from the end`);
    for (let day = Number(begin); day >= 1; day -= Number(step)) {
      found.add(day);
      if (step === undefined) break;
    }
  }
  return found;
}

function valuesOf(text: string, low: number, high: number): ReadonlySet<number> {
  const found = new Set<number>();
  for (const item of text.split(",")) {
    const [, all, from = "", to, step] = /^(?:(\*)|(\d+)(?:\.\.(\d+))?(?:\/(\d+))?)$/.exec(item) ?? [];
    if (all === undefined && from === "") throw new UnreadText(`${JSON.stringify(item)} is not understood`);
    const first = all ? low : Number(from);
    const last = all || (step !== undefined && to === undefined) ? high : Number(to ?? from);
    for (let value = first; value <= last; value += Number(step ?? 1)) found.add(value);
  }
  return found;
}
