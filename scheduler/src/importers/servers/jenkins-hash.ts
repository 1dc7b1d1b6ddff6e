/**
 * Computes the numbers that Jenkins uses for H. Jenkins takes them from java.util.Random, seeded with an MD5 hash of the
 * project's full name. The same calculation here gives an imported project the minute that it has in Jenkins.
 */
import { createHash } from "node:crypto";

/** Returns the next pseudo-random number, from 0 to `bound` − 1. */
export type Hash = (bound: number) => number;

const multiplier = 0x5deece66dn;
const mask = (1n << 48n) - 1n;

export function jenkinsHash(name: string): Hash {
  const digest = createHash("md5").update(name, "utf8").digest();
  let seed = 0n;
  for (let at = 0; at < 8; at++) seed = (seed << 8n) | BigInt((digest[at] as number) ^ (digest[at + 8] as number));
  let state = (seed ^ multiplier) & mask;
  const next = (bits: bigint): number => {
    state = (state * multiplier + 0xbn) & mask;
    return Number(BigInt.asIntN(32, state >> (48n - bits)));
  };
  return (bound) => {
    if ((bound & -bound) === bound) return Number((BigInt(bound) * BigInt(next(31n))) >> 31n);
    let drawn = next(31n);
    let value = drawn % bound;
    // As in java.util.Random, a number above the last whole multiple of the bound is rejected and drawn again; otherwise some numbers
    // would be likelier than others.
    while (drawn - value + (bound - 1) > 0x7fffffff) {
      drawn = next(31n);
      value = drawn % bound;
    }
    return value;
  };
}

const nicknames: Record<string, string> = {
  "@yearly": "H H H H *",
  "@annually": "H H H H *",
  "@monthly": "H H H * *",
  "@weekly": "H H * * H",
  "@daily": "H H * * *",
  "@midnight": "H H(0-2) * * *",
  "@hourly": "H * * * *",
};
/** The lowest and highest value that H takes in each field. The day of the month ends at 28, because every month has that day. */
const bounds = [
  [0, 59],
  [0, 23],
  [1, 28],
  [1, 12],
  [0, 6],
] as const;

/**
 * Replaces each H in the line by a number, or with a step by a list of numbers; returns undefined if the line cannot be parsed.
 */
export function spreadCron(line: string, hash: Hash): string | undefined {
  const fields = (nicknames[line.toLowerCase()] ?? line).split(/\s+/);
  if (fields.length !== bounds.length) return undefined;
  const made = fields.map((field, at) => {
    const items = field.split(",").map((item) => spreadItem(item, bounds[at] as readonly [number, number], hash));
    return items.includes(undefined) ? undefined : items.join(",");
  });
  return made.includes(undefined) ? undefined : made.join(" ");
}

function spreadItem(item: string, [low, high]: readonly [number, number], hash: Hash): string | undefined {
  if (!item.startsWith("H")) return item;
  const [whole, from = String(low), to = String(high), step = "0"] =
    /^H(?:\((\d+)-(\d+)\))?(?:\/(\d+))?$/.exec(item) ?? [];
  const [first, last, by] = [Number(from), Number(to), Number(step)];
  if (whole === undefined || last < first || by > last - first + 1) return undefined;
  if (by <= 1) return String(first + hash(last - first + 1));
  const values: number[] = [];
  for (let value = first + hash(by); value <= last; value += by) values.push(value);
  return values.join(",");
}
