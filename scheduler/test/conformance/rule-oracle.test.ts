/**
 * Compares random recurrence rules with python-dateutil: their local times, and the instants of these in time zones around transitions,
 * under each policy. CARILLON_TEST_LONG=1 tests all zones and more rules; CARILLON_TEST_SEED repeats a run.
 */
import { describe, expect, it } from "vitest";
import { isCarillonError } from "../../src/base/errors.ts";
import { seeded } from "../../src/base/random.ts";
import { compileSchedule, rrule, type ScheduleSpec } from "../../src/schedule/schedule.ts";
import { type Gap, type Overlap, transitionsOf, Window } from "../support/cron-oracle.ts";
import { hardZones, long, rounds, sample, seed } from "../support/long.ts";
import { basicText, expandedRules, mostTimes, type RandomRule, randomRule } from "../support/rule-oracle.ts";

const dayMs = 86_400_000;
const { next: chance } = seeded(seed);
const gaps: readonly Gap[] = ["skip", "shift"];
const overlaps: readonly Overlap[] = ["first", "last", "both"];
const local = (ms: number) => new Date(ms).toISOString().slice(0, 19);
/** Number of rules that one Python process expands. */
const batch = 250;

/** The largest share of rules that dateutil may fail to expand in time; the share is larger on a busy machine. */
const mostGivenUp = 0.4;

/** Returns the schedule of a rule; null if Carillon refuses the rule as one that never occurs. Then dateutil must find no time either. */
function specOf({ rule, startMs, rdate, exdate }: RandomRule, options: object): ScheduleSpec | null {
  try {
    const dates = { rdate: rdate.map(local), exdate: exdate.map(local) };
    return rrule(rule, { start: local(startMs), ...dates, ...options });
  } catch (error) {
    if (isCarillonError(error, "RRULE_NEVER")) return null;
    throw error;
  }
}

/** Compares the slots of the schedule in the window with `wanted`, forwards and backwards. */
function compare(
  spec: ScheduleSpec | null,
  wanted: readonly number[],
  fromMs: number,
  toMs: number,
  name: string,
): void {
  if (spec === null) {
    expect(wanted, `never, ${name}`).toEqual([]);
    return;
  }
  const schedule = compileSchedule(spec);
  const found: number[] = [];
  for (let slot = schedule.next(fromMs - 1); slot !== null && slot <= toMs; slot = schedule.next(slot))
    found.push(slot);
  expect(found, name).toEqual(wanted);
  const back: number[] = [];
  for (let slot = schedule.previous(toMs + 1); slot !== null && slot >= fromMs; slot = schedule.previous(slot))
    back.push(slot);
  expect(back.reverse(), `previous, ${name}`).toEqual(wanted);
  // Also tests `next` and `previous` from random instants between slots.
  for (let at = 0; at < 5; at++) {
    const asked = fromMs + Math.floor(chance() * (toMs - fromMs));
    const after = wanted.find((slot) => slot > asked);
    if (after !== undefined) expect(schedule.next(asked), `next after ${asked}, ${name}`).toBe(after);
    const before = wanted.findLast((slot) => slot < asked);
    if (before !== undefined) expect(schedule.previous(asked), `previous before ${asked}, ${name}`).toBe(before);
  }
}

/** The tests take several minutes, on a busy machine many more. */
const timeout = rounds(240_000, 7_200_000);

describe(`rules compared with dateutil, seed ${seed}`, () => {
  const batches = rounds(1, 80);
  it(`gives the local times of ${batches * batch} rules`, { timeout }, async () => {
    let compared = 0;
    for (let round = 0; round < batches; round++) {
      const rules = Array.from({ length: batch }, () => {
        const aroundMs = Date.UTC(1975, 0, 1) + Math.floor(chance() * 60 * 365 * 86_400) * 1000;
        return randomRule(chance, aroundMs);
      });
      // The rules are first expanded without additions, because added and excluded times are chosen from their times.
      const plain = await expandedRules(rules);
      for (const [at, rule] of rules.entries()) {
        const times = plain[at] ?? [];
        if (chance() < 0.3) rule.exdate = times.filter(() => chance() < 0.2).slice(0, 20);
        // Dates are added only to rules that have occurrences, because dateutil refuses a rule without any.
        if (times.length > 0 && chance() < 0.2)
          rule.rdate = [rule.startMs + Math.floor((chance() * dayMs) / 1000) * 1000, ...times.slice(3, 5)];
      }
      for (const [at, wanted] of (await expandedRules(rules)).entries()) {
        if (wanted === null) continue;
        compared++;
        const rule = rules[at] as RandomRule;
        const endMs = wanted.length === mostTimes ? (wanted.at(-1) as number) : rule.endMs;
        const name = `${rule.rule} from ${basicText(rule.startMs)}`;
        compare(
          specOf(rule, {}) && specOf(rule, { gap: "shift", overlap: "first" }),
          wanted.filter((slot) => slot >= 0),
          Math.max(rule.startMs, 0),
          endMs,
          name,
        );
      }
    }
    expect(compared).toBeGreaterThan(batches * batch * (1 - mostGivenUp));
  });

  const zones = sample(Intl.supportedValuesOf("timeZone"), 15, seeded(seed), hardZones);
  it(`gives the instants of rules at transitions of ${zones.length} zones, by each policy`, { timeout }, async () => {
    const cases: { rule: RandomRule; zone: string; window: Window }[] = [];
    for (const zone of zones) {
      const transitions = transitionsOf(zone, Date.UTC(1980, 0, 1), Date.UTC(2041, 0, 1), long ? dayMs : 2 * dayMs);
      for (const { at, before } of transitions.filter(() => chance() < (long ? 0.5 : 0.05))) {
        const rule = randomRule(chance, at + before);
        const [fromMs, toMs] = [at - 2 * dayMs, at + 2 * dayMs];
        cases.push({
          rule: { ...rule, endMs: at + before + 4 * dayMs },
          zone,
          window: new Window(zone, transitions, fromMs, toMs),
        });
      }
    }
    let compared = 0;
    for (let first = 0; first < cases.length; first += batch) {
      const some = cases.slice(first, first + batch);
      const times = await expandedRules(some.map(({ rule }) => rule));
      for (const [at, { rule, zone, window }] of some.entries()) {
        const locals = times[at] ?? null;
        // A list of `mostTimes` local times was cut off and may not reach the end of the window.
        if (locals === null || locals.length === mostTimes) continue;
        compared++;
        for (const gap of gaps)
          for (const overlap of overlaps) {
            const name = `${rule.rule} from ${basicText(rule.startMs)} in ${zone}, ${gap}, ${overlap}`;
            const wanted = window.slots(locals, gap, overlap);
            const spec = specOf(rule, { zone, gap, overlap });
            compare(spec, wanted, window.from, window.to - 1, name);
          }
      }
    }
    expect(compared).toBeGreaterThan(cases.length / 2);
  });
});
