/**
 * An independent oracle for the slots of cron expressions, by brute force and without code of the implementation. It generates random
 * expressions together with a simple predicate of their meaning, so it needs no parser. It finds transitions by another format of Intl,
 * enumerates every local minute of a window, and determines for each the instants at which a clock shows this minute.
 */

export interface Local {
  year: number;
  /** 1–12 */
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  /** 0 is Sunday. */
  weekday: number;
  daysInMonth: number;
}

export type Chance = () => number;
type Predicate = (local: Local) => boolean;

export interface Expression {
  text: string;
  /** Tests all fields except the seconds. */
  matchesMinute: Predicate;
  seconds: readonly number[];
}

export function localOf(asIfUtc: number): Local {
  const date = new Date(asIfUtc);
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
    second: date.getUTCSeconds(),
    weekday: date.getUTCDay(),
    daysInMonth: new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate(),
  };
}

// ---- random expressions

const pick = <T>(chance: Chance, items: readonly T[]): T => items[Math.floor(chance() * items.length)] as T;
const between = (chance: Chance, min: number, max: number) => min + Math.floor(chance() * (max - min + 1));
const weekdays = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const months = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

interface Item {
  text: string;
  matches: Predicate;
}

function spell(chance: Chance, names: readonly string[] | undefined, value: number, min: number): string {
  if (names === undefined || chance() < 0.6) return chance() < 0.1 && value < 10 ? `0${value}` : `${value}`;
  const name = names[(value - min) % names.length] as string;
  return pick(chance, [name, name.toLowerCase(), `${name[0]}${name.slice(1).toLowerCase()}`]);
}

/** `plain`: only expressions that every cron library supports, without wrapped ranges and without L, W, # and ?. */
export interface Style {
  plain: boolean;
}

function numbers(
  chance: Chance,
  style: Style,
  min: number,
  max: number,
  read: (local: Local) => number,
  names?: readonly string[],
  wraps = true,
): Item {
  const kind = chance();
  if (kind < 0.12) return { text: "*", matches: () => true };
  const size = max - min + 1;
  if (kind < 0.3) {
    const step = between(chance, 1, Math.max(1, Math.min(size - 1, pick(chance, [5, 15, size]))));
    return { text: `*/${step}`, matches: (local) => (read(local) - min) % step === 0 };
  }
  const a = between(chance, min, max);
  if (kind < 0.55) return { text: spell(chance, names, a, min), matches: (local) => read(local) === a };
  if (kind < 0.62 && !style.plain) {
    const step = between(chance, 1, Math.min(size - 1, 20));
    return { text: `${a}/${step}`, matches: (local) => read(local) >= a && (read(local) - a) % step === 0 };
  }
  let b = between(chance, min, max);
  if (b < a && (style.plain || !wraps)) b = between(chance, a, max);
  const step = chance() < 0.5 || b === a ? 1 : between(chance, 1, Math.min(size - 1, 7));
  const wanted = new Set<number>();
  // Walks round the circle of values from a to b, and takes every step-th value.
  for (let value = a, count = 0; ; value = value === max ? min : value + 1, count++) {
    if (count % step === 0) wanted.add(value);
    if (value === b) break;
  }
  const text = `${spell(chance, names, a, min)}-${spell(chance, names, b, min)}${step === 1 ? "" : `/${step}`}`;
  return { text, matches: (local) => wanted.has(read(local)) };
}

/** Returns the day of the month, in the same month, of the working day (Monday to Friday) that is nearest to `day`. */
function nearestWeekday(local: Local, day: number): number {
  const weekdayOf = (d: number) => (((local.weekday + d - local.day) % 7) + 7) % 7;
  for (const d of [day, day - 1, day + 1, day - 2, day + 2]) {
    if (d >= 1 && d <= local.daysInMonth && weekdayOf(d) >= 1 && weekdayOf(d) <= 5) return d;
  }
  throw new Error("every month has a weekday");
}

function dayOfMonth(chance: Chance, style: Style): Item {
  const kind = style.plain ? 1 : chance();
  if (kind < 0.1) return { text: pick(chance, ["L", "l"]), matches: (local) => local.day === local.daysInMonth };
  if (kind < 0.2) {
    const back = between(chance, 0, 30);
    return { text: `L-${back}`, matches: (local) => local.day === local.daysInMonth - back };
  }
  if (kind < 0.3) {
    return { text: "LW", matches: (local) => local.day === nearestWeekday(local, local.daysInMonth) };
  }
  if (kind < 0.4) {
    const day = between(chance, 1, 31);
    return {
      text: `${day}W`,
      matches: (local) => day <= local.daysInMonth && local.day === nearestWeekday(local, day),
    };
  }
  return numbers(chance, style, 1, 31, (local) => local.day);
}

function dayOfWeek(chance: Chance, style: Style): Item {
  const kind = style.plain ? 1 : chance();
  const which = between(chance, 0, 7);
  if (kind < 0.15) {
    return {
      text: `${spell(chance, weekdays, which, 0)}L`,
      matches: (local) => local.weekday === which % 7 && local.day + 7 > local.daysInMonth,
    };
  }
  if (kind < 0.3) {
    const k = between(chance, 1, 5);
    return {
      text: `${spell(chance, weekdays, which, 0)}#${k}`,
      matches: (local) => local.weekday === which % 7 && Math.ceil(local.day / 7) === k,
    };
  }
  if (kind < 0.4) return { text: "7", matches: (local) => local.weekday === 0 };
  return numbers(chance, style, 0, 6, (local) => local.weekday, weekdays);
}

function list(chance: Chance, one: () => Item): Item {
  const items = [one()];
  while (chance() < 0.25 && items.length < 4 && items[0]?.text !== "*") items.push(one());
  return {
    text: items.map((item) => item.text).join(","),
    matches: (local) => items.some((item) => item.matches(local)),
  };
}

const any: Item = { text: "*", matches: () => true };

/** Returns a random expression that mostly matches `target` or a moment near it. */
export function randomExpression(chance: Chance, target: Local, style: Style = { plain: false }): Expression {
  /** Makes items until one matches the target, at most thirteen times, because some expressions must not match. */
  const aimed = (make: () => Item): Item => {
    let item = make();
    for (let tries = 0; tries < 12 && !item.matches(target); tries++) item = make();
    return item;
  };
  const question = !style.plain && chance() < 0.3 ? { text: "?", matches: () => true } : any;
  const form = chance();
  const second =
    chance() < 0.5
      ? { text: "0", matches: (local: Local) => local.second === 0 }
      : aimed(() => list(chance, () => numbers(chance, style, 0, 59, (local) => local.second)));
  const minute = aimed(() => list(chance, () => numbers(chance, style, 0, 59, (local) => local.minute)));
  const hour =
    chance() < 0.3 ? any : aimed(() => list(chance, () => numbers(chance, style, 0, 23, (local) => local.hour)));
  const month =
    chance() < 0.7
      ? any
      : aimed(() => list(chance, () => numbers(chance, style, 1, 12, (local) => local.month, months)));
  let day: Item = question;
  let weekday: Item = any;
  const days = chance();
  if (days < 0.3) day = aimed(() => list(chance, () => dayOfMonth(chance, style)));
  else if (days < 0.6) {
    day = any;
    weekday = aimed(() => list(chance, () => dayOfWeek(chance, style)));
  } else if (days < 0.7 && !style.plain) {
    day = list(chance, () => dayOfMonth(chance, style));
    weekday = aimed(() => list(chance, () => dayOfWeek(chance, style)));
  }
  const open = (item: Item) => item.text.startsWith("*") || item.text.startsWith("?");
  const dayMatches: Predicate =
    open(day) || open(weekday)
      ? (local) => day.matches(local) && weekday.matches(local)
      : (local) => day.matches(local) || weekday.matches(local);
  const fields = [minute, hour, day, month, weekday];
  let year: Item = any;
  if (form < 0.5) fields.unshift(second);
  if (form < 0.12 && !style.plain) {
    year = list(chance, () => {
      const from = target.year - between(chance, 0, 2);
      const to = target.year + between(chance, 0, 2);
      const step = between(chance, 1, 3);
      return pick(chance, [
        any,
        { text: `${target.year}`, matches: (local: Local) => local.year === target.year },
        {
          text: `${from}-${to}/${step}`,
          matches: (local: Local) => local.year >= from && local.year <= to && (local.year - from) % step === 0,
        },
      ]);
    });
    fields.push(year);
  }
  const seconds = Array.from({ length: 60 }, (_, value) => value).filter((value) =>
    form < 0.5 ? second.matches({ ...target, second: value }) : value === 0,
  );
  return {
    text: fields.map((field) => field.text).join(" "),
    seconds,
    matchesMinute: (local) =>
      minute.matches(local) && hour.matches(local) && month.matches(local) && year.matches(local) && dayMatches(local),
  };
}

// ---- time zones

export interface Transition {
  at: number;
  before: number;
  after: number;
}

function offsetFormat(zone: string): (instant: number) => number {
  const format = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset", hour: "numeric" });
  return (instant) => {
    const text = format.format(instant);
    const found = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(text);
    if (found === null) throw new Error(`no offset in ${text}`);
    const seconds = Number(found[2] ?? 0) * 3600 + Number(found[3] ?? 0) * 60 + Number(found[4] ?? 0);
    return (found[1] === "-" ? -1 : 1) * seconds * 1000;
  };
}

export function transitionsOf(zone: string, from: number, to: number, stepMs: number): Transition[] {
  const offsetAt = offsetFormat(zone);
  const found: Transition[] = [];
  let before = offsetAt(from);
  for (let at = from; at < to; at += stepMs) {
    let after = offsetAt(at + stepMs);
    if (after === before) continue;
    // Walks by hours, then minutes, then seconds to the first transition of the step. A bisection would be quicker, but might find
    // a later transition of the same step.
    let step = at;
    for (const size of [3_600_000, 60_000, 1000]) while (offsetAt(step + size) === before) step += size;
    after = offsetAt(step + 1000);
    found.push({ at: step + 1000, before, after });
    before = after;
    at = step + 1000 - stepMs;
  }
  return found;
}

// ---- slots

export type Gap = "skip" | "shift";
export type Overlap = "first" | "last" | "both";

/** A period of time in one zone, short enough that a list can hold all its transitions. */
export class Window {
  readonly from: number;
  readonly to: number;
  readonly #base: number;
  readonly #transitions: readonly Transition[];

  /** @param all the zone's transitions, at least all those within two days of the window */
  constructor(zone: string, all: readonly Transition[], from: number, to: number) {
    this.from = from;
    this.to = to;
    this.#transitions = all.filter(({ at }) => at > from - 2 * 86_400_000 && at < to + 2 * 86_400_000);
    this.#base = this.#transitions[0]?.before ?? offsetFormat(zone)(from);
  }

  #offsetAt(instant: number): number {
    let offset = this.#base;
    for (const { at, after } of this.#transitions) if (instant >= at) offset = after;
    return offset;
  }

  /** Returns all local seconds that match the expression and can belong to an instant in the window, as if they were UTC, in ms. */
  matches(expression: Expression): number[] {
    const offsets = [this.#base, ...this.#transitions.map(({ after }) => after)];
    const reach = Math.max(...offsets) - Math.min(...offsets);
    const first = Math.floor((this.from + Math.min(...offsets) - reach) / 60_000) * 60_000;
    const last = this.to + Math.max(...offsets) + reach;
    const found: number[] = [];
    for (let minute = first; minute < last; minute += 60_000) {
      if (!expression.matchesMinute(localOf(minute))) continue;
      for (const second of expression.seconds) found.push(minute + second * 1000);
    }
    return found;
  }

  /** Returns the slots in [from, to), in ascending order. */
  slots(localTimes: readonly number[], gap: Gap, overlap: Overlap): number[] {
    const offsets = [...new Set([this.#base, ...this.#transitions.map(({ after }) => after)])];
    const slots = new Set<number>();
    for (const local of localTimes) {
      let first = Number.POSITIVE_INFINITY;
      let last = Number.NEGATIVE_INFINITY;
      for (const offset of offsets) {
        const instant = local - offset;
        if (this.#offsetAt(instant) !== offset) continue;
        first = Math.min(first, instant);
        last = Math.max(last, instant);
      }
      if (last < first) {
        const skipping = this.#transitions.find(({ at, before, after }) => local >= at + before && local < at + after);
        if (skipping === undefined) throw new Error(`local time ${new Date(local).toISOString()} is nowhere`);
        if (gap === "shift") slots.add(local - skipping.before);
        continue;
      }
      if (overlap !== "last") slots.add(first);
      if (overlap !== "first") slots.add(last);
    }
    return [...slots].filter((slot) => slot >= this.from && slot < this.to).sort((a, b) => a - b);
  }
}
