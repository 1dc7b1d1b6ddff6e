/**
 * Reads cron expressions by each scheduler's own rules, which differ in the number of fields, in the number that means Sunday, and in the
 * meaning of two restricted day fields. This code shares nothing with schedule/ or the importers, so that a mistake in any of them shows as
 * a difference.
 */
import { type CronDialect, UnreadText } from "./source-times.ts";
import type { CivilDate, Reading } from "./walk.ts";

type Unit = "second" | "minute" | "hour" | "day" | "month" | "weekday" | "year";

interface Rules {
  /** The units of the fields in their order; one layout for each permitted number of fields. */
  layouts: readonly (readonly Unit[])[];
  /** The number that means Sunday. */
  sunday: number;
  /** If both day fields are restricted: whether a day must match `either` of the two or `both`. */
  days: "either" | "both";
  /** True if the text of a day field counts as unrestricted. */
  isOpen: (field: string) => boolean;
}

const five: readonly Unit[] = ["minute", "hour", "day", "month", "weekday"];
const six: readonly Unit[] = ["second", ...five];
const beginsWithStar = (field: string): boolean => /^[*?]/.test(field);
const isStar = (field: string): boolean => /^[*?](?:\/1)?$/.test(field);

const rulesOf: Record<CronDialect, Rules> = {
  vixie: { layouts: [five], sunday: 0, days: "either", isOpen: beginsWithStar },
  kubernetes: { layouts: [five], sunday: 0, days: "either", isOpen: isStar },
  dkron: { layouts: [five, six], sunday: 0, days: "either", isOpen: isStar },
  "cron-parser": { layouts: [five, six], sunday: 0, days: "either", isOpen: isStar },
  fugit: { layouts: [five, six], sunday: 0, days: "either", isOpen: isStar },
  quartz: { layouts: [six, [...six, "year"]], sunday: 1, days: "both", isOpen: isStar },
  eventbridge: { layouts: [[...five, "year"]], sunday: 1, days: "both", isOpen: isStar },
  celery: { layouts: [five], sunday: 0, days: "both", isOpen: isStar },
  jenkins: { layouts: [five], sunday: 0, days: "both", isOpen: isStar },
  apscheduler: { layouts: [[...six, "year"]], sunday: 6, days: "both", isOpen: isStar },
};

const nicknames: Record<string, string> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

const bounds: Record<Unit, readonly [number, number]> = {
  second: [0, 59],
  minute: [0, 59],
  hour: [0, 23],
  day: [1, 31],
  month: [1, 12],
  weekday: [0, 6],
  year: [1970, 2200],
};
const monthNames = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const dayNames = "sun mon tue wed thu fri sat".split(" ");

interface Field {
  text: string;
  values: ReadonlySet<number>;
  /** One predicate for each item with L, W or #: true if the item matches the date. The days of such items depend on the month. */
  special: readonly ((date: CivilDate) => boolean)[];
}

/** @throws UnreadText for a text that this reader does not understand */
export function readCron(dialect: CronDialect, text: string): Reading {
  const rules = rulesOf[dialect];
  const expression = nicknames[text.trim().toLowerCase()] ?? text.trim();
  const parts = expression.split(/\s+/);
  const layout = rules.layouts.find(({ length }) => length === parts.length);
  if (layout === undefined) throw new UnreadText(`${JSON.stringify(text)} has ${parts.length} fields`);
  const fieldOf = (unit: Unit, usual: string): Field => {
    const at = layout.indexOf(unit);
    return readField(unit, at < 0 ? usual : (parts[at] as string), rules);
  };
  const [day, weekday] = [fieldOf("day", "*"), fieldOf("weekday", "*")];
  const [months, years] = [fieldOf("month", "*").values, fieldOf("year", "*").values];
  const isEither = rules.days === "either" && !rules.isOpen(day.text) && !rules.isOpen(weekday.text);
  const matches = (field: Field, value: number, date: CivilDate) =>
    field.values.has(value) || field.special.some((isDay) => isDay(date));
  return {
    hours: ascending(fieldOf("hour", "*").values),
    minutes: ascending(fieldOf("minute", "*").values),
    seconds: ascending(fieldOf("second", "0").values),
    isDay(date) {
      if (!months.has(date.month) || !years.has(date.year)) return false;
      const [byDay, byWeekday] = [matches(day, date.day, date), matches(weekday, date.weekday, date)];
      return isEither ? byDay || byWeekday : byDay && byWeekday;
    },
  };
}

export const ascending = (values: Iterable<number>): number[] => [...values].sort((a, b) => a - b);

function readField(unit: Unit, text: string, rules: Rules): Field {
  const values = new Set<number>();
  const special: ((date: CivilDate) => boolean)[] = [];
  for (const item of text.toLowerCase().split(",")) {
    const found = specialOf(unit, item, rules);
    if (found) special.push(found);
    else for (const value of valuesOf(unit, item, rules)) values.add(value);
  }
  return { text, values, special };
}

/** Converts a name or number to the field's value; a weekday becomes 0 (Sunday) to 6. @throws UnreadText if the unit has no such value */
function numberOf(unit: Unit, word: string, rules: Rules): number {
  if (unit === "weekday") {
    const named = dayNames.indexOf(word);
    if (named >= 0) return named;
    if (/^\d$/.test(word)) return (Number(word) - rules.sunday + 7) % 7;
  }
  if (unit === "month" && monthNames.includes(word)) return monthNames.indexOf(word) + 1;
  const [low, high] = bounds[unit];
  if (unit !== "weekday" && /^\d+$/.test(word) && Number(word) >= low && Number(word) <= high) return Number(word);
  throw new UnreadText(`${JSON.stringify(word)} is no ${unit}`);
}

function valuesOf(unit: Unit, item: string, rules: Rules): number[] {
  const [, base = "", stepText] = /^([^/]+)(?:\/(\d+))?$/.exec(item) ?? [];
  const step = Number(stepText ?? 1);
  if (base === "" || step < 1) throw new UnreadText(`${JSON.stringify(item)} is no ${unit}`);
  const [low, high] = bounds[unit];
  // Weekdays are renumbered so that the scheduler's first day of the week is 0, because a step such as */2 counts from that day.
  const origin = unit === "weekday" ? firstWeekday(rules) : 0;
  const turn = (value: number) => (unit === "weekday" ? (value - origin + 7) % 7 : value);
  let [from, to] = [low, high];
  if (base !== "*" && base !== "?") {
    const [first = "", last] = base.split("-");
    from = turn(numberOf(unit, first, rules));
    to = last === undefined ? (stepText === undefined ? from : high) : turn(numberOf(unit, last, rules));
    if (unit === "weekday" && last === "7" && rules.sunday === 0) to = 7;
  }
  if (to < from) to += high - low + 1;
  const values: number[] = [];
  for (let value = from; value <= to; value += step) values.push(value > high ? value - (high - low + 1) : value);
  return unit === "weekday" ? values.map((value) => (value + origin) % 7) : values;
}

/** Returns the first day of the scheduler's week: 0 for Sunday, 1 for Monday. */
const firstWeekday = ({ sunday }: Rules): number => (sunday === 6 ? 1 : 0);

function specialOf(unit: Unit, item: string, rules: Rules): ((date: CivilDate) => boolean) | undefined {
  if (unit === "day") {
    if (item === "last") return ({ day, last }) => day === last;
    const [fromEnd, back, near] = /^l(?:-(\d+))?(w?)$/.exec(item) ?? [];
    if (fromEnd !== undefined) {
      const target = ({ last }: CivilDate) => last - Number(back ?? 0);
      return (date) => (near === "w" ? date.day === nearest(date, target(date)) : date.day === target(date));
    }
    const [, fixed] = /^(\d+)w$/.exec(item) ?? [];
    if (fixed !== undefined) return (date) => date.day === nearest(date, Number(fixed));
  }
  if (unit === "weekday") {
    // In Quartz and similar dialects, L alone in the weekday field means Saturday.
    if (item === "l" && rules.sunday === 1) return ({ weekday }) => weekday === 6;
    const [, ending] = /^(\d|[a-z]{3})l$/.exec(item) ?? [];
    if (ending !== undefined) {
      const wanted = numberOf(unit, ending, rules);
      return ({ weekday, day, last }) => weekday === wanted && day > last - 7;
    }
    const [, one, which] = /^(\d|[a-z]{3})#(-1|l|last|\d)$/.exec(item) ?? [];
    if (one !== undefined) {
      const wanted = numberOf(unit, one, rules);
      return ({ weekday, day, last }) =>
        weekday === wanted && (/^\d$/.test(which ?? "") ? Math.ceil(day / 7) === Number(which) : day > last - 7);
    }
  }
  return undefined;
}

/**
 * Returns the working day (Monday to Friday) nearest to the day `target` within the month; −1 if the month has no day `target`.
 */
function nearest({ day, weekday, last }: CivilDate, target: number): number {
  if (target > last || target < 1) return -1;
  const falls = (((weekday - day + target) % 7) + 7) % 7;
  if (falls === 6) return target === 1 ? 3 : target - 1;
  if (falls === 0) return target === last ? target - 2 : target + 1;
  return target;
}
