/**
 * Parses a cron expression into bit masks. It accepts the five fields of Vixie cron, six fields with seconds first, seven with the year
 * last, and Quartz's `L W # ?`. Weekdays are 0–7 as in cron (Sunday is 0 and 7), not 1–7 as in Quartz. docs/tasks/cron.md has a table.
 */

import { CarillonError } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { editDistance } from "../base/nearest.ts";
import { Cron, type CronFields, firstYear } from "./cron.ts";

interface FieldForm {
  name: string;
  min: number;
  max: number;
  /** The number of values after which the field's cycle repeats, so that ranges can wrap around. 0 if ranges do not wrap. */
  cycle: number;
  names?: readonly string[];
  allowed: string;
}

const second: FieldForm = { name: "second", min: 0, max: 59, cycle: 60, allowed: "0-59, *, ranges, steps and lists" };
const minute: FieldForm = { ...second, name: "minute" };
const hour: FieldForm = { name: "hour", min: 0, max: 23, cycle: 24, allowed: "0-23, *, ranges, steps and lists" };
const day: FieldForm = {
  name: "day of month",
  min: 1,
  max: 31,
  cycle: 31,
  allowed: "1-31, *, ?, ranges, steps, lists, L, L-3, LW, 15W",
};
const month: FieldForm = {
  name: "month",
  min: 1,
  max: 12,
  cycle: 12,
  names: ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
  allowed: "1-12, JAN-DEC, *, ranges, steps and lists",
};
const weekday: FieldForm = {
  name: "day of week",
  min: 0,
  max: 7,
  cycle: 7,
  names: ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
  allowed: "0-7 (Sunday is 0 and 7), SUN-SAT, *, ?, ranges, steps, lists, FRIL, FRI#2",
};
const year: FieldForm = {
  name: "year",
  min: firstYear,
  max: limits.lastYear,
  cycle: 0,
  allowed: `${firstYear}-${limits.lastYear}, *, ranges, steps and lists`,
};

const macros: Record<string, string> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

/** Returns the expression trimmed and with single spaces, which is the form that is stored, compared and displayed. */
export function tidyCron(expression: string): string {
  return expression.trim().replace(/\s+/g, " ");
}

/** Parsed expressions by their text. Many schedules have the same expressions, and each is parsed when it is given, read and compiled. */
const parsed = new Map<string, Cron>();
const parsedMost = 2_000;

/**
 * Parses a cron expression.
 * @throws CRON_INVALID; CRON_NEVER if it never matches; SLOT_TOO_FAR if its years are beyond the last supported year
 */
export function parseCron(expression: string): Cron {
  const known = parsed.get(expression);
  if (known !== undefined) return known;
  if (typeof expression !== "string") {
    throw invalid(shownValue(expression), "is not a text", 'Give a text such as "0 9 * * MON-FRI".');
  }
  if (expression.length > limits.cronTextLength) {
    throw invalid(
      expression,
      `has ${expression.length} characters; at most ${limits.cronTextLength} are allowed`,
      "Use ranges and steps (0-58/2) in place of long lists, or several tasks.",
    );
  }
  const text = tidyCron(expression);
  const fields = parseFields(text);
  const cron = new Cron(fields);
  if (cron.nextLocal(Date.UTC(firstYear, 0, 1)) === Number.POSITIVE_INFINITY) {
    throw new CarillonError(
      "CRON_NEVER",
      `cron ${quote(text)}: no such date exists from ${firstYear} to ${limits.lastYear}`,
      {
        hint: neverHint(fields),
      },
    );
  }
  if (parsed.size >= parsedMost) parsed.clear();
  parsed.set(expression, cron);
  return cron;
}

function parseFields(text: string): CronFields {
  let expanded = text;
  if (text.startsWith("@")) {
    const macro = macros[text.toLowerCase()];
    if (macro === undefined) throw invalid(text, "is not a name that Carillon knows", macroHint(text.toLowerCase()));
    expanded = macro;
  }
  const zone = /^(?:CRON_)?TZ=(\S{0,64})/i.exec(text);
  if (zone !== null) {
    const hint = `Give the zone as an option: cron("...", { zone: ${JSON.stringify(zone[1])} }).`;
    throw invalid(text, "begins with a zone", hint);
  }
  const parts = expanded === "" ? [] : expanded.split(" ");
  const after = /^[A-Za-z]+\/[A-Za-z_+\-\d]*[a-z][A-Za-z_/+\-\d]*$/.exec(parts.at(-1) ?? "");
  if (after !== null) {
    const hint = `Give the zone as an option: cron("...", { zone: ${JSON.stringify(after[0].slice(0, 64))} }).`;
    throw invalid(text, "ends with a zone", hint);
  }
  if (parts.length < 5 || parts.length > 7) {
    throw invalid(
      text,
      `has ${parts.length} field${parts.length === 1 ? "" : "s"}; 5, 6 or 7 are allowed`,
      countHint(text, parts),
    );
  }
  const withSeconds = parts.length > 5;
  const [s, m, h, d, mo, w, y] = (withSeconds ? parts : ["0", ...parts]) as [
    string,
    string,
    string,
    string,
    string,
    string,
    string?,
  ];
  const fields: CronFields = {
    secondsLow: 0,
    secondsHigh: 0,
    minutesLow: 0,
    minutesHigh: 0,
    hours: 0,
    days: 0,
    lastDays: 0,
    nearest: 0,
    lastNearest: 0,
    months: 0,
    weekdays: 0,
    lastWeekdays: 0,
    nth: null,
    years: null,
    either: !/^[*?]/.test(d) && !/^[*?]/.test(w),
    withSeconds,
  };
  each(text, second, s, (value) => {
    if (value < 30) fields.secondsLow |= 1 << value;
    else fields.secondsHigh |= 1 << (value - 30);
  });
  each(text, minute, m, (value) => {
    if (value < 30) fields.minutesLow |= 1 << value;
    else fields.minutesHigh |= 1 << (value - 30);
  });
  each(text, hour, h, (value) => {
    fields.hours |= 1 << value;
  });
  each(
    text,
    day,
    d,
    (value) => (fields.days |= 1 << (value - 1)),
    (item) => dayItem(text, item, fields),
  );
  each(text, month, mo, (value) => {
    fields.months |= 1 << (value - 1);
  });
  each(
    text,
    weekday,
    w,
    (value) => (fields.weekdays |= 1 << (value % 7)),
    (item) => weekdayItem(text, item, fields),
  );
  if (y !== undefined && y !== "*" && y !== "?") {
    const years = new Set<number>();
    each(text, year, y, (value) => years.add(value));
    fields.years = [...years].sort((a, b) => a - b);
  }
  return fields;
}

/**
 * Calls `add` with each value that a field names.
 * @param special handles items such as `L` and `FRI#2`; returns false for an item that is a number, a range or a step
 */
function each(
  text: string,
  form: FieldForm,
  field: string,
  add: (value: number) => void,
  special?: (item: string) => boolean,
): void {
  for (const item of field.split(",")) {
    if (special?.(item.toUpperCase())) continue;
    const slash = item.indexOf("/");
    const base = slash < 0 ? item : item.slice(0, slash);
    let step = 1;
    if (slash >= 0) {
      const digits = item.slice(slash + 1);
      step = /^\d{1,4}$/.test(digits) ? Number(digits) : 0;
      const most = form.cycle === 0 ? form.max - form.min : form.cycle - 1;
      if (step < 1 || step > most) {
        throw badField(text, form, item, `has the step ${quote(digits)}, not 1-${most}`, stepHint(form, step));
      }
    }
    let start = form.min;
    let end = form === weekday ? 6 : form.max;
    if (base === "?" && form !== day && form !== weekday) {
      throw badField(text, form, item, "cannot be ?", "Only the day fields can be ?; write * here.");
    }
    if (base !== "*" && base !== "?") {
      const dash = base.indexOf("-");
      start = readValue(text, form, item, dash < 0 ? base : base.slice(0, dash));
      if (dash >= 0) end = readValue(text, form, item, base.slice(dash + 1));
      else if (slash < 0) end = start;
      else if (form === weekday) start %= 7;
    }
    if (end < start) {
      if (form.cycle === 0) {
        throw badField(text, form, item, "runs backwards", `Write the earlier year first: ${end}-${start}.`);
      }
      end += form.cycle;
    }
    for (let value = start; value <= end; value += step) {
      add(value > form.max && form.cycle > 0 ? value - form.cycle : value);
    }
  }
}

function readValue(text: string, form: FieldForm, item: string, word: string): number {
  if (/^\d{1,4}$/.test(word)) {
    const value = Number(word);
    if (value >= form.min && value <= form.max) return value;
    if (form === year && value > form.max) {
      throw new CarillonError("SLOT_TOO_FAR", `cron ${quote(text)}: year ${value} is after ${limits.lastYear}`, {
        hint: `Carillon plans up to the year ${limits.lastYear}.`,
      });
    }
    throw badField(
      text,
      form,
      item,
      item === word ? "is out of range" : `has ${value}, which is out of range`,
      rangeHint(form, value),
    );
  }
  const named = form.names?.indexOf(word.toUpperCase()) ?? -1;
  if (named >= 0) return named + form.min;
  throw badField(
    text,
    form,
    item,
    word === "" ? "is incomplete" : item === word ? "is unknown" : `has ${quote(word)}`,
    wordHint(form, word),
  );
}

/** Reads a special item of the day field: L, L-3, LW, L-3W or 15W. @returns false for any other item */
function dayItem(text: string, item: string, fields: CronFields): boolean {
  const fromEnd = /^L(?:-(\d{1,2}))?(W?)$/.exec(item);
  if (fromEnd !== null) {
    const back = Number(fromEnd[1] ?? 0);
    if (back > 30) throw badField(text, day, item, `goes back ${back} days`, "L-0 to L-30 are allowed.");
    if (fromEnd[2] === "W") fields.lastNearest |= 1 << back;
    else fields.lastDays |= 1 << back;
    return true;
  }
  if (item === "WL") throw badField(text, day, item, 'has "WL"', "The last weekday of the month is LW.");
  const nearest = /^(\d{1,2})W$/.exec(item);
  if (nearest === null) return false;
  fields.nearest |= 1 << (readValue(text, day, item, nearest[1] as string) - 1);
  return true;
}

/** Reads a special item of the weekday field: 5L, FRIL or FRI#2. @returns false for any other item */
function weekdayItem(text: string, item: string, fields: CronFields): boolean {
  if (item === "L") {
    throw badField(
      text,
      weekday,
      item,
      "has L without a day",
      "Cron programs disagree on its meaning. Write SAT, or SATL for the month's last Saturday.",
    );
  }
  const last = /^(\d{1,2}|[A-Z]{3})L$/.exec(item);
  if (last !== null) {
    fields.lastWeekdays |= 1 << (readValue(text, weekday, item, last[1] as string) % 7);
    return true;
  }
  const hash = item.indexOf("#");
  if (hash < 0) return false;
  const which = readValue(text, weekday, item, item.slice(0, hash)) % 7;
  const k = item.slice(hash + 1);
  if (!/^[1-5]$/.test(k)) {
    throw badField(text, weekday, item, `has #${k}`, "#1 to #5 are allowed; FRIL is the last Friday.");
  }
  const nth = fields.nth === null ? [0, 0, 0, 0, 0] : [...fields.nth];
  nth[Number(k) - 1] = (nth[Number(k) - 1] as number) | (1 << which);
  fields.nth = nth;
  return true;
}

function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text);
}

function invalid(text: string, what: string, hint: string): CarillonError {
  return new CarillonError("CRON_INVALID", `cron ${quote(text)} ${what}`, { hint });
}

function badField(text: string, form: FieldForm, item: string, what: string, hint: string): CarillonError {
  const where = item === "" ? "an empty item" : quote(item);
  return invalid(text, `- ${form.name}: ${where} ${what}; allowed are ${form.allowed}`, hint);
}

function macroHint(text: string): string {
  if (text.startsWith("@every")) return `Use an interval: every("${text.slice(6).trim() || "5m"}").`;
  if (text.startsWith("@reboot"))
    return "A start of a machine is not a time. Use a manual schedule and run the task from your start-up.";
  const [near] = Object.keys(macros)
    .filter((name) => editDistance(name, text) <= 2)
    .sort((a, b) => editDistance(a, text) - editDistance(b, text));
  return near === undefined ? `Known are ${Object.keys(macros).join(", ")}.` : `Did you mean ${near}?`;
}

function countHint(text: string, parts: readonly string[]): string {
  if (/^every\b/i.test(text)) return 'For an interval use every("5m").';
  const clock = /^(\d{1,2}):(\d{2})$/.exec(text);
  if (clock !== null) return `Every day at that time is "${Number(clock[2])} ${Number(clock[1])} * * *".`;
  if (/^\d+(?:ms|s|m|h|d)$/.test(text)) return `For an interval use every("${text}").`;
  if (parts.length === 4)
    return `The fields are: minute, hour, day of month, month, day of week. Perhaps ${quote(`${text} *`)}?`;
  return "The fields are: minute, hour, day of month, month, day of week; with 6, seconds come first; with 7, the year comes last.";
}

function stepHint(form: FieldForm, step: number): string {
  if (step === 0) return `A step is a whole number from 1, as in */5.`;
  const unit = form === second ? "s" : form === minute ? "m" : form === hour ? "h" : "";
  if (unit === "") return "Name the values instead, as in 1,15.";
  return `Steps start again with each ${form === second ? "minute" : form === minute ? "hour" : "day"}. For a longer interval use every("${step}${unit}").`;
}

function rangeHint(form: FieldForm, value: number): string {
  if (form === hour && value === 24) return "Midnight is hour 0.";
  if ((form === minute || form === second) && value === 60) return "The full minute or hour is 0.";
  if (form === weekday) return "Monday is 1, Saturday 6, Sunday 0 or 7; names are clearer: MON.";
  const nearest = value < form.min ? form.min : form.max;
  return `The nearest allowed value is ${nearest}.`;
}

function wordHint(form: FieldForm, word: string): string {
  if (/^-?\d+\.\d+$/.test(word)) return "Only whole numbers are allowed.";
  if (/^\d{1,2}:\d{2}$/.test(word)) return 'Minute and hour are fields of their own: 12:30 is "30 12 * * *".';
  if (word.toUpperCase() === "H")
    return 'H is a value of each task\'s own: spreadCron("...", name) gives it, or use the jitter option.';
  if (form === weekday && /^[LW]|[LW]$/i.test(word))
    return "In the day of week, L follows a day: FRIL. W belongs to the day of month: 15W.";
  const start = word.slice(0, 3).toUpperCase();
  const near = form.names?.find((name) => name === start) ?? form.names?.find((name) => editDistance(name, start) <= 1);
  if (near !== undefined) return `Did you mean ${near}?`;
  if (word === "") return "Write one value on each side of - and between commas.";
  return form.names === undefined ? "Write a number." : `Write a number or a name such as ${form.names[1]}.`;
}

function neverHint(f: CronFields): string {
  if (f.years?.every((y) => y % 4 !== 0 || (y % 100 === 0 && y % 400 !== 0))) {
    return "None of the years is a leap year, or the day is not in the month; L is the month's last day.";
  }
  return "The day is longer than the month, or falls on no such weekday; L is the month's last day.";
}
