/** Field names that handlers use for the total amount of work. */
const totals = ["of", "total", "max", "count"];

export interface Measured {
  done: number;
  total: number;
  /** The other fields of the progress. */
  rest: Record<string, unknown>;
}

const isCount = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value) && value >= 0;

/**
 * Parses a progress that contains the share of work done: a number up to 1, such as `0.4`; `{ percent: 40 }`; or an object with a total
 * (named as in `totals`) and another number, such as `{ part: 3, of: 120 }`. Returns undefined for any other value.
 */
export function measured(progress: unknown): Measured | undefined {
  if (isCount(progress)) return progress <= 1 ? { done: progress, total: 1, rest: {} } : undefined;
  if (typeof progress !== "object" || progress === null || Array.isArray(progress)) return undefined;
  const entries = Object.entries(progress);
  const without = (...names: string[]) => Object.fromEntries(entries.filter(([name]) => !names.includes(name)));
  const percent = entries.find(([name, value]) => name === "percent" && isCount(value) && value <= 100);
  if (percent) return { done: percent[1] as number, total: 100, rest: without("percent") };
  const total = entries.find(([name, value]) => totals.includes(name) && isCount(value) && value > 0);
  const done = entries.find(([name, value]) => name !== total?.[0] && isCount(value));
  if (!total || !done || (done[1] as number) > (total[1] as number)) return undefined;
  return { done: done[1] as number, total: total[1] as number, rest: without(total[0], done[0]) };
}
