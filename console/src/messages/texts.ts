/**
 * Formats everything that the viewer reads: texts of the catalogue, numbers, time spans and times, in the viewer's language and
 * zone.
 */
import type { Language } from "../preferences.ts";
import { en } from "./en/en.ts";
import { serverZh } from "./zh/server.ts";
import { zh } from "./zh/zh.ts";

export type Message = keyof typeof en;
export type Vars = Record<string, string | number>;

export const catalogues: Record<Language, Record<Message, string>> = { en, zh };

/** Fills in a text: `{name}` is replaced by `vars.name`; in "one|many" the first form is used if `vars.n` is 1. */
export function filled(text: string, language: Language, vars: Vars = {}): string {
  const [one = "", many = one] = text.split("|");
  const chosen = vars.n === 1 ? one : many;
  return chosen.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = vars[name];
    return value === undefined ? whole : typeof value === "number" ? numberText(value, language) : value;
  });
}

const locales: Record<Language, string> = { en: "en-GB", zh: "zh-CN" };
const numbers = new Map<string, Intl.NumberFormat>();

function numberText(value: number, language: Language, options: Intl.NumberFormatOptions = {}): string {
  const key = `${language}${JSON.stringify(options)}`;
  let format = numbers.get(key);
  if (!format) {
    format = new Intl.NumberFormat(locales[language], options);
    numbers.set(key, format);
  }
  return format.format(value);
}

const dates = new Map<string, Intl.DateTimeFormat>();

function dateFormat(language: Language, zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${language} ${zone} ${JSON.stringify(options)}`;
  let format = dates.get(key);
  if (!format) {
    format = new Intl.DateTimeFormat(locales[language], { timeZone: zone, hourCycle: "h23", ...options });
    dates.set(key, format);
  }
  return format;
}

const dateText = (ms: number, language: Language, zone: string, options: Intl.DateTimeFormatOptions): string =>
  dateFormat(language, zone, options).format(ms);

const clockParts = { hour: "2-digit", minute: "2-digit", second: "2-digit" } as const;
const yearOf = (ms: number, zone: string) => dateText(ms, "en", zone, { year: "numeric" });

/** Formats a date such as "Sat 28 Nov 2026". The month is a word, because 08/03 is March to one reader and August to another. */
function dayOf(ms: number, language: Language, zone: string, hasYear: boolean): string {
  const parts: Intl.DateTimeFormatOptions = { weekday: "short", day: "numeric", month: "short" };
  const shown: Intl.DateTimeFormatOptions = hasYear ? { ...parts, year: "numeric" } : parts;
  return dateText(ms, language, zone, shown).replace(",", "");
}

/** Returns the zone's offset at that time, such as "GMT+1". */
const offsetOf = (ms: number, language: Language, zone: string): string =>
  dateFormat(language, zone, { timeZoneName: "shortOffset" })
    .formatToParts(ms)
    .find(({ type }) => type === "timeZoneName")?.value ?? "";

/** A time further away than this is written as a date, because a date cannot be read from "in 7,043 d". */
const farMs = 30 * 86_400_000;

/** Matches an instant in UTC in a text of the server, such as 2026-11-28T10:00:00Z. */
const instants = /\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z/g;

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

export function spanText(ms: number, language: Language): string {
  const sign = ms < 0 ? "−" : "";
  const size = Math.abs(ms);
  const word = (unit: "d" | "h" | "min" | "s" | "ms") => catalogues[language][`unit.${unit}`];
  if (size < 1_000) return `${sign}${Math.round(size)} ${word("ms")}`;
  if (size < 10_000) return `${sign}${numberText(size / 1_000, language, { maximumFractionDigits: 1 })} ${word("s")}`;
  const at = Math.max(
    0,
    units.findIndex(([, unitMs]) => size >= unitMs),
  );
  const [unit, unitMs] = units[at] ?? units[3];
  const whole = Math.floor(size / unitMs);
  const next = units[at + 1];
  const rest = next && whole < 10 ? Math.floor((size - whole * unitMs) / next[1]) : 0;
  const more = next && rest > 0 ? ` ${rest} ${word(next[0])}` : "";
  return `${sign}${numberText(whole, language)} ${word(unit)}${more}`;
}

export function wordsIn(language: Language, zone: string) {
  // A newer server may send words that this page has no text for, such as a new alarm rule: the word itself is shown.
  const texts: Partial<Record<Message, string>> = catalogues[language];
  const t = (message: Message, vars?: Vars) => filled(texts[message] ?? message, language, vars);
  const span = (ms: number) => spanText(ms, language);
  /** Formats a date, with the year if it is not the current year. */
  const day = (ms: number, inZone = zone, nowMs = Date.now()) =>
    dayOf(ms, language, inZone, yearOf(ms, inZone) !== yearOf(nowMs, inZone));
  /** Formats a date and the time of day. The seconds are omitted if the time is a whole minute. */
  const when = (ms: number, inZone = zone, nowMs = Date.now()) => {
    const { second: _, ...toTheMinute } = clockParts;
    return `${day(ms, inZone, nowMs)} ${dateText(ms, language, inZone, ms % 60_000 === 0 ? toTheMinute : clockParts)}`;
  };
  return {
    language,
    zone,
    t,
    span,
    count: (value: number) => numberText(value, language),
    percent: (value: number) =>
      numberText(value, language, { style: "percent", maximumFractionDigits: value < 0.995 && value > 0.9 ? 1 : 0 }),
    clock: (ms: number, inZone = zone) => dateText(ms, language, inZone, clockParts),
    minute: (ms: number, inZone = zone) => dateText(ms, language, inZone, { hour: "2-digit", minute: "2-digit" }),
    day,
    /** A day of a calendar, which has no zone. @param day counted from 1970-01-01 */
    date: (day: number) => dayOf(day * 86_400_000, language, "UTC", true),
    monthName: (year: number, month: number) => dateText(Date.UTC(year, month, 1), language, "UTC", { month: "long" }),
    /** @param weekday 0 is Sunday */
    weekdayName: (weekday: number, length: "narrow" | "short" | "long") =>
      dateText((weekday + 3) * 86_400_000, language, "UTC", { weekday: length }),
    when,
    /** Formats the date with its year and the time to the second, with the zone's offset. */
    moment: (ms: number, inZone = zone) =>
      `${dayOf(ms, language, inZone, true)} ${dateText(ms, language, inZone, clockParts)} ${offsetOf(ms, language, inZone)}`,
    exact: (ms: number, inZone = zone) => dateText(ms, language, inZone, { ...clockParts, fractionalSecondDigits: 3 }),
    /** True if `away` writes the time as a date, which a text that has the date already need not repeat. */
    far: (ms: number, now: number) => Math.abs(ms - now) > farMs,
    /**
     * Formats a time relative to now, such as "in 5 min" or "2 h ago"; as a date if it is more than 30 days away. Where `inZone` is
     * given, the caller names that zone beside it.
     */
    away: (ms: number, now: number, inZone = zone) => {
      const gap = ms - now;
      if (Math.abs(gap) < 1_000) return t("time.now");
      if (Math.abs(gap) > farMs) return day(ms, inZone, now);
      return gap > 0
        ? t("time.in", { span: rounded(gap, language) })
        : t("time.ago", { span: rounded(-gap, language) });
    },
    /**
     * Formats a text of the server: instants in UTC are shown in the zone, and known sentences are translated if the language is
     * Chinese.
     */
    told: (text: string, inZone = zone) => {
      const said = text.replace(instants, (iso) => when(Date.parse(iso.replace(" ", "T")), inZone));
      return language === "zh" ? serverZh(said) : said;
    },
  };
}

/** A time span in its largest unit, rounded. */
function rounded(ms: number, language: Language): string {
  const [unit, unitMs] = units.find(([, size]) => ms >= size) ?? units[3];
  const value = ms / unitMs;
  const word = catalogues[language][`unit.${unit}`];
  const digits = value < 3 && unit !== "s" ? 1 : 0;
  return `${numberText(Math.max(1, value), language, { maximumFractionDigits: digits })} ${word}`;
}

export type Words = ReturnType<typeof wordsIn>;
