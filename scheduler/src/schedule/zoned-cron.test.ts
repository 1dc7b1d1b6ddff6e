/**
 * Compares slots around transitions of 2000–2040 and in random weeks with the brute-force calculation of test/support/cron-oracle.ts. By
 * default, a sample of zones and transitions is tested. CARILLON_TEST_LONG=1 tests every transition of every zone and searches for
 * transitions in shorter steps; CARILLON_ORACLE_ROUNDS (default 1) then multiplies the number of expressions per transition and week.
 */
import { describe, expect, it } from "vitest";
import {
  type Expression,
  type Gap,
  localOf,
  type Overlap,
  randomExpression,
  transitionsOf,
  Window,
} from "../../test/support/cron-oracle.ts";
import { hardZones, long, rounds, sample, seed } from "../../test/support/long.ts";
import { isCarillonError } from "../base/errors.ts";
import { seeded } from "../base/random.ts";
import { parseCron } from "./cron-parse.ts";
import { zoneOf } from "./zone.ts";
import { nextInZone, previousInZone } from "./zoned-cron.ts";

const multiple = rounds(1, Number(process.env.CARILLON_ORACLE_ROUNDS ?? 1));
const zones = sample(Intl.supportedValuesOf("timeZone"), 25, seeded(seed), hardZones);
const from = Date.UTC(2000, 0, 1);
const to = Date.UTC(2041, 0, 1);
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const gaps: readonly Gap[] = ["skip", "shift"];
const overlaps: readonly Overlap[] = ["first", "last", "both"];

/** The step of the search for transitions: two days, or six hours in the long run. */
const step = long ? 6 * hourMs : 2 * dayMs;
const transitions = new Map(zones.map((zone) => [zone, transitionsOf(zone, from, to, step)]));

/** Returns null if the expression is refused because it never matches; the oracle must then find no match in its window either. */
function parsed(expression: Expression, localTimes: readonly number[]) {
  try {
    return parseCron(expression.text);
  } catch (error) {
    if (!isCarillonError(error, "CRON_NEVER")) throw error;
    expect(localTimes, `${expression.text} was refused, seed ${seed}`).toEqual([]);
    return null;
  }
}

let turn = 0;

/** @returns the number of slots compared */
function compare(zone: string, window: Window, expression: Expression): number {
  const localTimes = window.matches(expression);
  const cron = parsed(expression, localTimes);
  if (cron === null) return 0;
  let compared = 0;
  // Tests all six combinations of policies. For an expression with very many matches, only one combination is tested, to save time;
  // each such expression gets the next combination.
  const only = localTimes.length > 120 ? turn++ % 6 : -1;
  for (const [i, gap] of gaps.entries()) {
    for (const [j, overlap] of overlaps.entries()) {
      if (only >= 0 && only !== i * 3 + j) continue;
      const expected = window.slots(localTimes, gap, overlap);
      const forwards: number[] = [];
      for (let at: number | null = window.from - 1; ; ) {
        at = nextInZone(cron, zoneOf(zone), gap, overlap, at);
        if (at === null || at >= window.to) break;
        forwards.push(at);
      }
      const backwards: number[] = [];
      for (let at: number | null = window.to; ; ) {
        at = previousInZone(cron, zoneOf(zone), gap, overlap, at);
        if (at === null || at < window.from) break;
        backwards.push(at);
      }
      compared += expected.length;
      if (!same(expected, forwards) || !same(expected, backwards.reverse())) {
        const show = (slots: number[]) => slots.map((slot) => new Date(slot).toISOString());
        const what = `"${expression.text}" ${zone} gap ${gap} overlap ${overlap}, seed ${seed}`;
        expect(show(forwards), `next: ${what}`).toEqual(show(expected));
        expect(show(backwards), `previous: ${what}`).toEqual(show(expected));
      }
    }
  }
  return compared;
}

const same = (a: readonly number[], b: readonly number[]) => a.length === b.length && a.every((x, i) => x === b[i]);

describe("cron in zones against the oracle", () => {
  it(`agrees around the transitions of each zone (seed ${seed})`, {
    timeout: 120_000 * rounds(1, 10 * multiple),
  }, () => {
    const random = seeded(seed);
    const chance = () => random.next();
    let seen = 0;
    let compared = 0;
    const changes = new Set<string>();
    for (const [zone, list] of transitions) {
      for (const { at, before, after } of list) {
        seen++;
        const known = changes.size;
        changes.add(`${at} ${before} ${after}`);
        // Many zones have the same changes at the same moments. Changes that an earlier zone already had are compared only once in four
        // times.
        if (!long && changes.size === known && chance() < 0.75) continue;
        const change = Math.abs(after - before);
        const window = new Window(zone, list, at - change - hourMs, at + change + hourMs);
        for (let round = 0; round < multiple; round++) {
          const aim = at + (chance() < 0.5 ? before : after) + Math.floor((chance() - 0.5) * 2.2 * change);
          let expression = randomExpression(chance, localOf(aim));
          // Most expressions with many seconds are replaced, because thousands of similar slots would take most of the time.
          if (expression.seconds.length > 4 && chance() < 0.9) expression = randomExpression(chance, localOf(aim));
          compared += compare(zone, window, expression);
        }
      }
    }
    if (long)
      process.stderr.write(
        `${seen} transitions, ${changes.size} of them different, ${zones.length} zones, ${compared} slots, seed ${seed}\n`,
      );
    // The runtimes of 2026 have 418 zones and about 13,000 transitions. A far lower number would mean that almost nothing was compared.
    expect(seen).toBeGreaterThan(rounds(700, 8_000));
    expect(changes.size).toBeGreaterThan(rounds(500, 2_000));
    expect(compared).toBeGreaterThan(seen);
  });

  it(`agrees over random fortnights (seed ${seed})`, { timeout: 60_000 * rounds(1, 10 * multiple) }, () => {
    const random = seeded(seed + 1);
    const chance = () => random.next();
    let compared = 0;
    for (let round = 0; round < rounds(40, 150 * multiple); round++) {
      const zone = zones[Math.floor(chance() * zones.length)] as string;
      const start = from + 2 * dayMs + Math.floor((chance() * (to - from - 20 * dayMs)) / 1000) * 1000;
      const expression = randomExpression(chance, localOf(start + chance() * 2 * dayMs));
      const days = expression.seconds.length < 3 ? 14 : 1;
      compared += compare(zone, new Window(zone, transitions.get(zone) ?? [], start, start + days * dayMs), expression);
    }
    expect(compared).toBeGreaterThan(rounds(250, 1_000));
  });

  it(`has the right offset of zones at random instants (seed ${seed})`, () => {
    const random = seeded(seed + 2);
    for (const zone of zones) {
      const list = transitions.get(zone) ?? [];
      for (let i = 0; i < 50; i++) {
        const at = from + 5 * dayMs + random.next() * (to - from - 10 * dayMs);
        const last = list.filter((transition) => transition.at <= at).at(-1);
        const expected = last?.after ?? list[0]?.before;
        if (expected !== undefined) expect(zoneOf(zone).at(at).offset, `${zone} ${at}, seed ${seed}`).toBe(expected);
      }
    }
  });
});
