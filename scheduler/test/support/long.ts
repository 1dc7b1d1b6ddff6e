/**
 * Long property tests: by default a seeded sample of each runs, which takes a few seconds; CARILLON_TEST_LONG=1 runs them completely. `npm
 * run test:long` finds the test files by this import or by their use of the variable, so there is no list of them.
 */
import type { Random } from "../../src/base/random.ts";

export const long = process.env.CARILLON_TEST_LONG === "1";

/** Seed of the random tests. Each test names the seed in its title, so that a failure shows it; CARILLON_TEST_SEED repeats a run. */
export const seed = Number(process.env.CARILLON_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** Returns the number of rounds of a random test: `sampled` by default, `whole` in a long run. */
export const rounds = (sampled: number, whole: number): number => (long ? whole : sampled);

/** Returns the items of `always` and `count` random others of `all`; in a long run, all items. */
export function sample<T>(all: readonly T[], count: number, random: Random, always: readonly T[] = []): readonly T[] {
  const chosen = new Set(long ? all : always);
  const others = all.filter((one) => !chosen.has(one));
  for (let n = 0; n < count && others.length > 0; n++) {
    for (const one of others.splice(Math.floor(random.next() * others.length), 1)) chosen.add(one);
  }
  return [...chosen];
}

/**
 * Zones with unusual transitions: changes by half an hour or by two hours, a day left out, summer time interrupted for Ramadan, changes at
 * midnight, offsets with seconds, and changes announced only a few days ahead.
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
