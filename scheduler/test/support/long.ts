/**
 * Long property tests: the suite runs a seeded sample of them that takes a few seconds, CARILLON_TEST_LONG=1 runs them whole.
 * `npm run test:long` runs every test file that imports this module or reads the variable itself: no list of them is kept.
 */
import type { Random } from "../../src/base/random.ts";

export const long = process.env.CARILLON_TEST_LONG === "1";

/** Names it in the title of each test that uses it, so that a failure prints it; CARILLON_TEST_SEED repeats a run. */
export const seed = Number(process.env.CARILLON_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** The number of rounds of a random test. */
export const rounds = (sampled: number, whole: number): number => (long ? whole : sampled);

/** `always`, and of `all` those that `random` chooses: `count` of them, or in the long run all. */
export function sample<T>(all: readonly T[], count: number, random: Random, always: readonly T[] = []): readonly T[] {
  const chosen = new Set(long ? all : always);
  const others = all.filter((one) => !chosen.has(one));
  for (let n = 0; n < count && others.length > 0; n++) {
    for (const one of others.splice(Math.floor(random.next() * others.length), 1)) chosen.add(one);
  }
  return [...chosen];
}

/**
 * Zones with unusual clock changes: half-hour and two-hour changes, a day left out, summer time interrupted for Ramadan, a change at
 * midnight, offsets of seconds, changes decreed at a few days' notice.
 */
export const hardZones: readonly string[] = [
  "Africa/Cairo",
  "Africa/Casablanca",
  "Africa/El_Aaiun",
  "Africa/Monrovia",
  "America/Argentina/Tucuman",
  "America/Caracas",
  "America/New_York",
  "America/Nuuk",
  "America/Santiago",
  "America/Sao_Paulo",
  "America/St_Johns",
  "Antarctica/Casey",
  "Antarctica/Troll",
  "Asia/Gaza",
  "Asia/Kathmandu",
  "Asia/Pyongyang",
  "Asia/Tehran",
  "Australia/Lord_Howe",
  "Europe/Berlin",
  "Europe/Dublin",
  "Europe/Istanbul",
  "Europe/Volgograd",
  "Pacific/Apia",
  "Pacific/Chatham",
  "Pacific/Kwajalein",
  "UTC",
];
