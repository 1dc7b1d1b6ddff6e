/**
 * Compares random series of whole days, in the forms in which calendar programs write them into ICS files, with python-dateutil.
 * CARILLON_TEST_LONG=1 compares 5,000 series; CARILLON_TEST_SEED repeats a run.
 */
import { describe, expect, it } from "vitest";
import { isCarillonError } from "../../src/base/errors.ts";
import { seeded } from "../../src/base/random.ts";
import { dayText, instantAt } from "../../src/schedule/calendar.ts";
import { holidaysOfIcs } from "../../src/schedule/ics/ics.ts";
import { zoneOf } from "../../src/schedule/zone.ts";
import { rounds, seed } from "../support/long.ts";
import { basicText, expandedRules, mostTimes, type RandomRule, randomRule } from "../support/rule-oracle.ts";

const dayMs = 86_400_000;
const { next: chance } = seeded(seed);
const pick = <T>(items: readonly T[]): T => items[Math.floor(chance() * items.length)] as T;
const zones = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Pacific/Auckland"];
const frequencies = ["DAILY", "WEEKLY", "MONTHLY", "YEARLY"];
/** Number of series that one Python process expands. */
const batch = 50;
/** The largest share of series that dateutil may fail to expand in time; the share is larger on a busy machine. */
const mostGivenUp = 0.4;

const date = (ms: number) => basicText(ms).slice(0, 8);

/** Returns a random rule of whole days, without times of day. In UNTIL the time of day is set to midnight. */
function wholeDays(): RandomRule {
  const random = randomRule(chance, Date.UTC(1975, 0, 1) + Math.floor(chance() * 60 * 365) * dayMs, frequencies);
  let rule = random.rule.replace(/;BY(?:HOUR|MINUTE|SECOND)=[^;]*/g, "").replace(/(UNTIL=\d{8})T\d{6}/, "$1T000000");
  if (!/;BY(?!SETPOS)/.test(rule)) rule = rule.replace(/;BYSETPOS=[^;]*/, "");
  return { ...random, rule, startMs: Math.floor(random.startMs / dayMs) * dayMs };
}

/** Returns a date of a series of whole days in one of the forms that calendar programs use. */
function written(name: string, ms: number, zone: string): string {
  const midnight = `${basicText(instantAt(zoneOf(zone), ms))}Z`;
  const value = pick([date(ms), midnight, `${date(ms)}T000000Z`, `${date(ms)}T000000`]);
  if (name === "UNTIL") return `UNTIL=${value}`;
  if (value.length === 8) return `${name}${pick([";VALUE=DATE", ""])}:${value}`;
  return value.endsWith("Z") ? `${name}:${value}` : `${name};TZID=${zone}:${value}`;
}

describe(`ICS files compared with dateutil, seed ${seed}`, () => {
  const batches = rounds(1, 100);
  let compared = 0;
  // Each batch is a test of its own, so that it has a full time limit, and a failure does not stop the other batches.
  it.each(Array.from({ length: batches }, (_, at) => at + 1))(
    `gives the days of ${batch} series, %i of ${batches}`,
    async () => {
      const rules = Array.from({ length: batch }, wholeDays);
      for (const [at, times] of (await expandedRules(rules)).entries()) {
        if (times === null) continue;
        compared++;
        const { rule, startMs, endMs } = rules[at] as RandomRule;
        const zone = pick(zones);
        const left = times.filter(() => chance() < 0.1).slice(0, 5);
        const lastMs = times.length === mostTimes ? (times.at(-1) as number) : endMs;
        // Dates are added only to rules that have occurrences, because a rule without any is refused.
        const added =
          times.length > 0 && chance() < 0.2
            ? [startMs + Math.floor((chance() * (lastMs - startMs)) / dayMs) * dayMs]
            : [];
        const text = [
          "BEGIN:VCALENDAR",
          `X-WR-TIMEZONE:${zone}`,
          "BEGIN:VEVENT",
          `DTSTART;VALUE=DATE:${date(startMs)}`,
          `RRULE:${rule.replace(/UNTIL=(\d{4})(\d\d)(\d\d)T000000/, (_, year, month, day) =>
            written("UNTIL", Date.UTC(Number(year), Number(month) - 1, Number(day)), zone),
          )}`,
          ...left.map((ms) => written("EXDATE", ms, zone)),
          ...added.map((ms) => written("RDATE", ms, zone)),
          "END:VEVENT",
          "END:VCALENDAR",
        ].join("\r\n");
        const wanted = [...new Set([...times, ...added])].filter((ms) => !left.includes(ms) && ms <= lastMs);
        const window = { fromDay: startMs / dayMs, toDay: Math.floor(lastMs / dayMs), zone: pick(zones) };
        const days = wanted.sort((a, b) => a - b).map((ms) => dayText(ms / dayMs));
        expect(daysOf(text, window, times.length === 0), text).toEqual(days);
      }
    },
  );

  it("dateutil gave up on only a few series", () => {
    expect(compared).toBeGreaterThan(batches * batch * (1 - mostGivenUp));
  });
});

/** @param mayNever true if dateutil found no date; then the rule may be refused as one that never occurs */
function daysOf(text: string, window: Parameters<typeof holidaysOfIcs>[1], mayNever: boolean): string[] {
  try {
    return holidaysOfIcs(text, window);
  } catch (error) {
    if (mayNever && isCarillonError(error, "CALENDAR_INVALID") && error.message.includes("never comes")) return [];
    throw error;
  }
}
