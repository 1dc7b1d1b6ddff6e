/**
 * Implements `H` in a cron expression, as in Jenkins. H stands for a value computed from the task's name, so that tasks with equal
 * expressions do not all start at the same time.
 */
import { CarillonError } from "../../base/errors.ts";
import { mix } from "../../base/random.ts";

/** The lowest and highest value of H in each field. The day of the month ends at 28, because every month has that day. */
const fieldRanges = [
  { name: "minute", first: 0, last: 59 },
  { name: "hour", first: 0, last: 23 },
  { name: "day of month", first: 1, last: 28 },
  { name: "month", first: 1, last: 12 },
  { name: "day of week", first: 0, last: 6 },
] as const;

const hashed = /^H(?:\((\d{1,2})-(\d{1,2})\))?(?:\/(\d{1,2}))?$/i;

/** True for an expression with five fields, at least one of which contains an H. */
export const hasSpread = (expression: string): boolean =>
  /^\S+(?:\s+\S+){4}$/.test(expression.trim()) && /(?:^|[\s,])H(?:$|[\s,/(])/i.test(expression);

/**
 * Returns the expression with a value in place of each H. The value depends only on the expression and the name, so every node
 * computes the same value. It differs from the value in Jenkins, which uses another hash function.
 * @param expression such as "H 2 * * *", "H/15 * * * *", "H(0-29)/10 * * * *"
 * @param name the task's name
 * @throws CRON_INVALID for an H that has no possible value
 */
export function spreadCron(expression: string, name: string): string {
  let hash = 0;
  for (const character of name) hash = mix(hash, character.codePointAt(0) as number);
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== fieldRanges.length) return expression;
  return fields
    .map((field, at) =>
      field
        .split(/,(?![^(]*\))/)
        .map((item) => spreadItem(item, fieldRanges[at] as (typeof fieldRanges)[number], mix(hash, at)))
        .join(","),
    )
    .join(" ");
}

function spreadItem(item: string, { name, first, last }: (typeof fieldRanges)[number], hash: number): string {
  if (!/^H/i.test(item)) return item;
  const [found, from = String(first), to = String(last), step] = hashed.exec(item) ?? [];
  const [low, high, by] = [Number(from), Number(to), Number(step ?? 0)];
  if (found === undefined || low > high || low < first || high > last || step === "0" || step === "00")
    throw new CarillonError("CRON_INVALID", `cron: ${name} ${JSON.stringify(item)} has no value`, {
      hint: `Write H, H/15, H(0-29) or H(0-29)/10, within ${first} to ${last}.`,
    });
  const size = high - low + 1;
  if (by === 0) return String(low + (hash % size));
  const start = low + (hash % Math.min(by, size));
  return start + by > high ? String(start) : `${start}-${high}/${by}`;
}
