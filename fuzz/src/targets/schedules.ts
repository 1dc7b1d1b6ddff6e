import fc from "fast-check";
import { formatDuration, parseDuration } from "../../../scheduler/src/base/duration.ts";
import type { Cron, CronFields } from "../../../scheduler/src/schedule/cron.ts";
import { parseCron, tidyCron } from "../../../scheduler/src/schedule/cron-parse.ts";
import { cronWords } from "../../../scheduler/src/schedule/in-words.ts";
import { cronOfPhrase } from "../../../scheduler/src/schedule/phrase/phrase.ts";
import {
  cron,
  nextSlots,
  previousSlots,
  type ScheduleSpec,
  validateSchedule,
} from "../../../scheduler/src/schedule/schedule.ts";
import { zoneName, zoneOf } from "../../../scheduler/src/schedule/zone.ts";
import { readSchedule, writtenSchedule } from "../../../scheduler/src/task/kinds/schedule.ts";
import { crons, durations, phrases, phraseWords, tasks, taskWords, zones } from "../corpus.ts";
import { expect, hold, same } from "../expected.ts";
import { oddNumbers, oddValues, spoiltTexts, spoiltValues, wordSalad } from "../mutation.ts";
import { target } from "../target.ts";

const cronSigns = [
  "*",
  "?",
  "L",
  "W",
  "LW",
  "#",
  "/",
  "-",
  ",",
  " ",
  "MON",
  "SUN",
  "JAN",
  "DEC",
  "*/2",
  "1-5",
  "@daily",
  "TZ=UTC",
];
const moments = fc.integer({ min: 0, max: Date.UTC(2200, 0, 1) });
/** Slots must be earlier than this time, in epoch ms. */
const lastMs = Date.UTC(2201, 0, 1);

const cronField = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "*",
        "?",
        "L",
        "LW",
        "L-3",
        "15W",
        "FRI#2",
        "5L",
        "MON-FRI",
        "JAN,MAR",
        "*/15",
        "10-20/3",
        "0",
        "1",
        "59",
      ),
      fc.nat(70).map(String),
      fc.tuple(fc.nat(62), fc.nat(62)).map(([a, b]) => `${a}-${b}`),
      fc.tuple(fc.nat(62), fc.nat(30)).map(([a, b]) => `${a}/${b}`),
    ),
    { minLength: 1, maxLength: 3 },
  )
  .map((items) => items.join(","));

const cronTexts = fc.oneof(
  spoiltTexts(crons, cronSigns),
  fc.array(cronField, { minLength: 5, maxLength: 7 }).map((fields) => fields.join(" ")),
  wordSalad([...cronSigns, ...oddNumbers], "", 20),
);

/** Removes `withSeconds`, because the description of a cron in words does not contain it. */
const meant = ({ withSeconds: _, ...fields }: CronFields): unknown => fields;

function slotsHold(spec: ScheduleSpec, fromMs: number): void {
  const next = nextSlots(spec, fromMs, 3);
  next.forEach((slot, at) => {
    hold(slot > (at === 0 ? fromMs : (next[at - 1] as number)) && slot < lastMs, () => `slots ${next} after ${fromMs}`);
  });
  const first = next[0];
  const isDelay = spec.type === "every" && spec.mode === "delay";
  if (first === undefined || isDelay) return;
  const [back] = previousSlots(spec, first + 1, 1);
  hold(back === first, () => `the slot before ${first + 1} is ${back}, and ${first} was the next after ${fromMs}`);
  const [before] = previousSlots(spec, first, 1);
  hold(before === undefined || before <= fromMs, () => `between ${fromMs} and its next slot ${first} lies ${before}`);
}

export const scheduleTargets = [
  target({
    name: "cron",
    share: 3,
    inputs: fc.record({ text: cronTexts, zone: fc.constantFrom(...zones), fromMs: moments }),
    feed: ({ text, zone, fromMs }) => {
      const parsed = expect(() => parseCron(text))?.value;
      if (!parsed) return;
      same(parseCron(tidyCron(text)).fields, parsed.fields, "tidied, it means something else");
      const made = expect(() => cron(text, { zone }))?.value;
      if (!made) return;
      same(validateSchedule(made), made, "checked again, it is another");
      slotsHold(made, fromMs);
    },
    grown: { corpus: crons, most: 100_000, feed: (text) => void expect(() => cron(text)) },
  }),
  target({
    name: "cron-words",
    share: 2,
    inputs: fc.record({ text: cronTexts, zone: fc.constantFrom(...zones) }),
    feed: ({ text, zone }) => {
      const parsed = expect(() => parseCron(text))?.value;
      if (!parsed) return;
      const words = cronWords(parsed.fields, zone);
      const said = cronOfPhrase(words);
      same(said.zone, zone, `the zone of ${JSON.stringify(words)}`);
      const back = parseCron(said.expression);
      if (JSON.stringify(meant(back.fields)) !== JSON.stringify(meant(parsed.fields))) sameTimes(parsed, back, words);
    },
  }),
  target({
    name: "phrases",
    share: 2,
    inputs: fc.oneof(
      spoiltTexts(phrases, phraseWords),
      wordSalad(phraseWords, " "),
      fc.string({ unit: "binary", maxLength: 60 }),
    ),
    feed: (phrase) => {
      const said = expect(() => cronOfPhrase(phrase))?.value;
      if (!said) return;
      const parsed = expect(() => parseCron(said.expression))?.value;
      if (!parsed) return;
      const words = cronWords(parsed.fields, "UTC");
      sameTimes(parsed, parseCron(cronOfPhrase(words).expression), words);
    },
    grown: { corpus: phrases, most: 100_000, feed: (text) => void expect(() => cronOfPhrase(text)) },
  }),
  target({
    name: "durations",
    share: 1,
    inputs: fc.oneof(
      spoiltTexts(durations, ["ms", "s", "m", "h", "d", "w", ".", " "]),
      wordSalad(["1", "9", ".", "ms", "s", "m", "h", "d", "w", " ", "-", "e"], "", 30),
      oddValues,
    ) as fc.Arbitrary<string>,
    feed: (text) => {
      const ms = expect(() => parseDuration(text, "it", 0))?.value;
      if (ms === undefined) return;
      hold(Number.isSafeInteger(ms) && ms >= 0, () => `${ms} ms`);
      same(parseDuration(formatDuration(ms), "it", 0), ms, `written as ${formatDuration(ms)}`);
    },
    grown: { corpus: durations, most: 100_000, feed: (text) => void expect(() => parseDuration(text)) },
  }),
  target({
    name: "zones",
    share: 1,
    inputs: fc.record({
      text: fc.oneof(
        spoiltTexts(zones, ["GMT", "+", "-", "05:30", "Etc/", "/", "_"]),
        fc.string({ unit: "binary", maxLength: 30 }),
        oddValues,
      ),
      ms: fc.integer({ min: -(2 ** 42), max: 2 ** 43 }),
    }),
    feed: ({ text, ms }) => {
      const name = expect(() => zoneName(text))?.value;
      if (name === undefined) return;
      same(zoneName(name), name, "its name is another name");
      const { offset } = zoneOf(name).at(ms);
      hold(
        Number.isInteger(offset) && Math.abs(offset) <= 26 * 3_600_000,
        () => `${name} is ${offset} ms off at ${ms}`,
      );
    },
    grown: { corpus: zones, most: 100_000, feed: (text) => void expect(() => zoneName(text)) },
  }),
  target({
    name: "schedules",
    share: 2,
    inputs: fc.record({
      value: spoiltValues(
        [
          ...tasks.map(({ schedule }) => schedule ?? "manual"),
          { type: "cron", expression: "0 2 * * *", zone: "UTC", gap: "skip", overlap: "first", jitterMs: 5 },
          { type: "every", everyMs: 60_000, mode: "rate", anchorMs: 7, jitterMs: 100 },
          { type: "interval", count: 2, unit: "week", on: ["MON"], at: ["09:00"], zone: "UTC", anchor: "2026-03-16" },
          { every: "3 months", on: [31, "TUE#2"], at: "02:30", zone: "Europe/Berlin", monthEnd: "skip" },
          { type: "rrule", rule: "FREQ=MONTHLY;BYDAY=2TU;COUNT=9", start: "2026-01-06T09:00:00", zone: "UTC" },
          {
            rrule: "FREQ=HOURLY;INTERVAL=5",
            start: "2026-01-06",
            exdate: ["2026-01-07"],
            rdate: ["2026-02-01T00:30:00Z"],
          },
          { type: "at", atMs: 2_000_000_000_000 },
          { type: "manual" },
        ],
        oddValues,
        taskWords,
      ),
      fromMs: moments,
    }),
    feed: ({ value, fromMs }) => {
      const spec = expect(() => readSchedule(value))?.value;
      if (!spec) return;
      same(readSchedule(writtenSchedule(spec)), spec, "written and read again, it is another");
      same(validateSchedule(JSON.parse(JSON.stringify(spec))), spec, "checked again, it is another");
      slotsHold(spec, fromMs);
    },
  }),
];

/**
 * Checks that two crons fire at the same times, after up to twelve instants. Their fields are not compared, because different fields may
 * have the same meaning.
 */
function sameTimes(a: Cron, b: Cron, words: string): void {
  let from = Date.UTC(2027, 1, 27, 22, 58, 58);
  for (let step = 0; step < 12; step++) {
    const [x, y] = [a.nextLocal(from), b.nextLocal(from)];
    hold(x === y, () => `${JSON.stringify(words)} is read as one that fires at ${y}, not at ${x}, after ${from}`);
    if (x === Number.POSITIVE_INFINITY) return;
    from = x + 1_000 + step * step * 86_400_000;
  }
}
