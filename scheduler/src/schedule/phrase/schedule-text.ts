/** Parses a schedule that is given as one text, in one of several notations. */
import { CarillonError } from "../../base/errors.ts";
import { ruleLines } from "../rrule/rule-text.ts";
import { cron, every, rrule, type ScheduleSpec, zoneNameOf } from "../schedule.ts";
import { zoneOf } from "../zone.ts";
import { periodOfPhrase } from "./calendar-phrase.ts";
import { cronOfPhrase } from "./phrase.ts";
import { hasSpread, spreadCron } from "./spread-cron.ts";
import { hasPhraseWord } from "./words.ts";

export interface TextOptions {
  /** The zone if the text names no zone, except for a recurrence rule with DTSTART; default "UTC". */
  zone?: string;
  /** The task's name, from which the value of an H in a cron is computed. */
  name?: string | undefined;
}

/**
 * @param text a cron expression, with or without "TZ=" and a zone before it, or a zone after it; "@every 1h30m"; a cron expression with
 * Jenkins' H; a recurrence rule; or an English phrase
 * @throws CRON_INVALID, CRON_NEVER, RRULE_INVALID, RRULE_NEVER, SCHEDULE_INVALID (also for two zones), DURATION_INVALID, ZONE_UNKNOWN,
 * SLOT_TOO_FAR
 */
export function scheduleOfText(text: string, { zone = "UTC", name }: TextOptions = {}): ScheduleSpec {
  const given = text.trim();
  const [, own, rest = ""] = /^(?:CRON_)?TZ=(\S+)\s+(.+)$/is.exec(given) ?? [];
  if (own !== undefined) {
    const spec = isRule(rest) ? rrule(rest, { zone: own }) : scheduleOfText(rest, { zone: own, name });
    const other = zoneNameOf(spec);
    if (other !== null && !isSameZone(own, other)) throw twoZones(given, own, other);
    return spec;
  }
  const [, period] = /^@every\s+(.+)$/i.exec(given) ?? [];
  if (period !== undefined) return every(period);
  if (isRule(given)) return rrule(given, isFloating(given) ? { zone } : {});
  const [, before = "", after = ""] = zoneEnd.exec(given) ?? [];
  if (hasSpread(before) || isCron(before)) return scheduleOfText(before, { zone: after, name });
  if (hasSpread(given)) {
    if (name === undefined)
      throw new CarillonError("CRON_INVALID", `cron ${JSON.stringify(given)}: H is a value of each task's own`, {
        hint: "Give the name of the task, or write a value in its place.",
      });
    return cron(spreadCron(given, name), { zone });
  }
  if (isCron(given)) return cron(given, { zone });
  const said = periodOfPhrase(given);
  if (said !== null) {
    const { period: length, zone: named, ...days } = said;
    return every(length, { ...days, zone: named ?? zone });
  }
  const found = cronOfPhrase(given);
  return cron(found.expression, { zone: found.zone ?? zone });
}

const twoZones = (text: string, first: string, second: string) =>
  new CarillonError(
    "SCHEDULE_INVALID",
    `the schedule ${JSON.stringify(text)} names two zones: ${first} and ${second}`,
    {
      hint: "Leave one of them out.",
    },
  );

/** True if both names mean one zone. Aliases such as US/Eastern and America/New_York count as one zone if Intl knows the alias. */
const isSameZone = (one: string, other: string): boolean =>
  zoneOf(one).name === zoneOf(other).name || resolved(one) === resolved(other);

const resolved = (zone: string): string =>
  new Intl.DateTimeFormat("en-US", { timeZone: zoneOf(zone).name }).resolvedOptions().timeZone;

/** Matches the zone at the end of a cron expression. A name of three letters before a / is a weekday or a month of the cron. */
const zoneEnd = /^(.+?),?\s+(UTC|(?:[A-Za-z]{4,}|US|Etc)\/[A-Za-z][\w+\-/]*)$/is;

/** True for "@daily" and other nicknames, or for five to seven fields that begin like a cron expression and have no word of a phrase. */
const isCron = (text: string): boolean => {
  const fields = text.split(/\s+/);
  return (
    text.startsWith("@") || (fields.length >= 5 && fields.length <= 7 && /^[\d*?]/.test(text) && !hasPhraseWord(text))
  );
};

const isRule = (text: string): boolean => /^(?:RRULE|DTSTART|RDATE|EXDATE)\b|\bFREQ=/i.test(text);

/** True if the rule's start has no zone of its own (RFC 5545: floating), so that it is a local time of the caller's zone. */
function isFloating(rule: string): boolean {
  const { start } = ruleLines(rule);
  return start === null || (start.zone === "" && start.time.kind !== "instant");
}
