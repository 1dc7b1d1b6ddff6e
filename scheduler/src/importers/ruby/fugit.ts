/**
 * Converts schedule texts of Fugit, which Solid Queue and Sidekiq-cron use: a cron expression or a phrase, with an optional zone at its
 * end. schedule/phrase/ refuses a phrase without an hour or a day as ambiguous; here Fugit's defaults complete it: midnight, and the first
 * of the month.
 */
import { isCarillonError } from "../../base/errors.ts";
import { cronOfPhrase } from "../../schedule/phrase/phrase.ts";
import { bothDays } from "../both-days.ts";
import { eitherDay } from "../either-day.ts";
import type { Findings, SourceFile } from "../findings.ts";

export interface FugitSchedule {
  cron: string;
  /** The zone's name; null if the text names no zone. */
  zone: string | null;
}

const zoneAtEnd = /^(.*?\S)\s+(?:(?:in|on)\s+)?(UTC|Z|[A-Z][A-Za-z]+\/[\w+\-/]+)$/;
const hours = "zero one two three four five six seven eight nine ten eleven twelve".split(" ");
const units: Record<string, string> = {
  s: "seconds",
  sec: "seconds",
  m: "minutes",
  min: "minutes",
  h: "hours",
  d: "days",
  M: "months",
};

/** @throws CRON_INVALID if the phrase cannot be parsed */
export function fugitSchedule(text: string): FugitSchedule {
  const [, before = text.trim(), named] = zoneAtEnd.exec(text.trim()) ?? [];
  const zone = named === undefined ? null : named === "Z" ? "UTC" : named;
  const isCron = /^[@*]|^\d\S*\s+[\d*]/.test(before);
  return { cron: isCron ? cronOf(before) : phraseOf(before), zone };
}

function cronOf(text: string): string {
  const last = text.replace(/\blast\b/gi, "L").replace(/#(?:-1|L)/gi, "L");
  const fields = last.split(/\s+/);
  const [day = "", month = "", weekday = ""] = fields.slice(-3);
  if (!/&/.test(day + weekday)) return eitherDay(last);
  const both = bothDays(day.replaceAll("&", ""), weekday.replaceAll("&", ""));
  // If no cron can express the days, the text keeps its `&`, so that the parser refuses it. Without the `&`, the cron would fire on days
  // that match either of the two fields.
  return both ? [...fields.slice(0, -3), both[0], month, both[1]].join(" ") : text;
}

function phraseOf(text: string): string {
  const [, count = "1", unit = ""] = /^every\s+(\d+)?\s*([a-zA-Z]+)$/.exec(text) ?? [];
  const whole = units[unit] ?? (unit === "" || unit.endsWith("s") ? unit : `${unit}s`).toLowerCase();
  if (whole === "days") return count === "1" ? "0 0 * * *" : `0 0 */${count} * *`;
  if (whole === "weeks" && count === "1") return "0 0 * * 0";
  if (whole === "years" && count === "1") return "0 0 1 1 *";
  if (whole === "months") return count === "1" ? "0 0 1 * *" : `0 0 1 */${count} *`;
  if (/^(?:second|minute|hour)s$/.test(whole)) return cronOfPhrase(`every ${count} ${whole}`).expression;
  // In Fugit, a number or its English word after "at" is an hour from 0 to 23: "at 5 and 17", "at five".
  const digits = text.replace(/(?<=\bat )[a-z]+\b/gi, (word) => {
    const hour = hours.indexOf(word.toLowerCase());
    return hour < 0 ? word : String(hour);
  });
  const clear = digits.replace(
    /\bat (\d{1,2}(?: and \d{1,2})*)(?![\d:]| ?[ap]\.?m)/gi,
    (_, list: string) => `at ${list.replace(/\d+/g, (hour) => `${hour.padStart(2, "0")}:00`)}`,
  );
  const isTimed = /\bat\b|\bnoon\b|\bmidnight\b|\b(?:hour|minute|second)/i.test(clear);
  return cronOfPhrase(isTimed ? clear : `${clear} at 00:00`).expression;
}

/** @returns undefined if the text cannot be parsed; a problem with the text is then reported */
export function rubySchedule(source: string, text: string, zone: string, file: SourceFile, findings: Findings) {
  try {
    const { cron, zone: named } = fugitSchedule(text);
    return { schedule: { cron, zone: named ?? zone }, isZoned: named !== null };
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    const line = file.text.split("\n").findIndex((one) => one.includes(text)) + 1;
    findings.problem(
      source,
      `${file.path}:${line}: its schedule ${JSON.stringify(text)}: ${error.message}`,
      error.hint,
    );
    return undefined;
  }
}
