/**
 * Reads Fugit's phrases, such as "every day at 5am", by the rules of the Ruby libraries Solid Queue and Sidekiq-cron. It covers
 * the usual phrases and crons, and shares no code with schedule/phrase/ or the importers.
 */
import { ascending, readCron } from "./cron-reading.ts";
import { UnreadText } from "./source-times.ts";
import type { Reading } from "./walk.ts";

const days = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const numbers = "zero one two three four five six seven eight nine ten eleven twelve".split(" ");

const all = (count: number): number[] => Array.from({ length: count }, (_, at) => at);
const stepped = (count: number, step: number): number[] => all(count).filter((value) => value % step === 0);

/** @throws UnreadText for a text that this reader does not understand */
export function readFugit(text: string): { reading: Reading; zone: string | undefined } {
  const [, before = text, zone] =
    /^(.*?\S)\s+(?:(?:in|on)\s+)?(UTC|Z|[A-Z][A-Za-z]+\/[\w+\-/]+)$/.exec(text.trim()) ?? [];
  const isCron = /^[@*\d]/.test(before.trim()) && !/^\d+(?:st|nd|rd|th)\b/.test(before.trim());
  return { reading: isCron ? readCron("fugit", before) : readPhrase(before), zone: zone === "Z" ? "UTC" : zone };
}

function readPhrase(text: string): Reading {
  const phrase = text.toLowerCase().replace(/,/g, " ").replace(/\s+/g, " ").trim();
  const pulse = /^every (?:(\d+) ?)?(s|sec|second|m|min|minute|h|hour|d|day|week|month|year)s?$/.exec(
    // In Fugit, 5M means five months and 5m five minutes, so M is replaced before the text is put in lower case.
    text
      .trim()
      .replace(/(\d) ?M$/, "$1 month")
      .toLowerCase(),
  );
  if (pulse) return readPulse(Number(pulse[1] ?? 1), pulse[2] as string);
  const [, minute] = /^every hour at minute (\d+)$/.exec(phrase) ?? [];
  if (minute !== undefined) return { hours: all(24), minutes: [Number(minute)], seconds: [0], isDay: () => true };
  const [, at = "", when = ""] = /^(?:at )(.+?) (every .+|on .+)$/.exec(phrase) ?? [];
  const [, day = when || phrase, time = at] = /^((?:every|on) .+?) at (.+)$/.exec(phrase) ?? [];
  const [, name = ""] = /^(?:every|on) (.+)$/.exec(day) ?? [];
  const clocks = (time === "" ? "midnight" : time).split(/ (?:and|or) | (?=\d)/).map(readClock);
  const minutes = new Set(clocks.map((clock) => clock.minute));
  if (name === "" || minutes.size !== 1) throw new UnreadText(`${JSON.stringify(text)} is not understood`);
  return {
    hours: ascending(new Set(clocks.map((clock) => clock.hour))),
    minutes: [...minutes],
    seconds: [0],
    isDay: readDays(name),
  };
}

function readPulse(count: number, unit: string): Reading {
  const base = { hours: [0], minutes: [0], seconds: [0], isDay: () => true };
  const fits = (length: number) => {
    if (count < 1 || count >= length) throw new UnreadText(`${count} is no step within ${length}`);
    return stepped(length, count);
  };
  if (unit.startsWith("s")) return { ...base, hours: all(24), minutes: all(60), seconds: fits(60) };
  if (unit.startsWith("h")) return { ...base, hours: fits(24) };
  if (unit === "m" || unit.startsWith("min")) return { ...base, hours: all(24), minutes: fits(60) };
  if (unit.startsWith("d")) return { ...base, isDay: ({ day }) => (day - 1) % count === 0 };
  if (unit === "week" && count === 1) return { ...base, isDay: ({ weekday }) => weekday === 0 };
  if (unit === "month") return { ...base, isDay: ({ day, month }) => day === 1 && (month - 1) % count === 0 };
  if (unit === "year" && count === 1) return { ...base, isDay: ({ day, month }) => day === 1 && month === 1 };
  throw new UnreadText(`every ${count} ${unit} is not understood`);
}

function readDays(name: string): Reading["isDay"] {
  if (name === "day") return () => true;
  if (name === "weekday") return ({ weekday }) => weekday >= 1 && weekday <= 5;
  if (name === "weekend") return ({ weekday }) => weekday === 0 || weekday === 6;
  const [, nth] = /^(?:the )?(\d+)(?:st|nd|rd|th) of (?:the|every|each) month$/.exec(name) ?? [];
  if (nth !== undefined) return ({ day }) => day === Number(nth);
  const named = new Set(
    name
      .split(/ (?:and|or) | /)
      .map((word) =>
        days.findIndex(
          (day) => day === word || day === word.replace(/s$/, "") || (word.length === 3 && day.startsWith(word)),
        ),
      ),
  );
  if (named.has(-1)) throw new UnreadText(`${JSON.stringify(name)} is no day`);
  return ({ weekday }) => named.has(weekday);
}

function readClock(text: string): { hour: number; minute: number } {
  if (text === "noon") return { hour: 12, minute: 0 };
  if (text === "midnight") return { hour: 0, minute: 0 };
  const [, digits = "", minute = "0", half] = /^(\d+|[a-z]+)(?::(\d\d))?(?: ?([ap])m)?$/.exec(text) ?? [];
  const hour = numbers.includes(digits) ? numbers.indexOf(digits) : Number(digits === "" ? Number.NaN : digits);
  if (!(hour <= 23)) throw new UnreadText(`${JSON.stringify(text)} is no time of day`);
  const shift = half === undefined ? hour : (hour % 12) + (half === "p" ? 12 : 0);
  return { hour: shift, minute: Number(minute) };
}
