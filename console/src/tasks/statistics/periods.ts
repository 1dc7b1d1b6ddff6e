import type { Answer } from "../../api/call.ts";

export type Statistics = Answer<"getTaskStatistics">;
export type Period = Statistics["periods"][number];
export const lengths = ["hour", "day", "month"] as const;
export type Length = (typeof lengths)[number];

const dayMs = 86_400_000;
/** The number of days that are shown by the day. Hours and months have the ranges of the server. */
const daysShown = 92;

/** Returns when the shown periods begin, in whole days of UTC, so that the request stays the same for a day. */
export const sinceOf = (by: Length, nowMs: number): string | undefined =>
  by === "day" ? new Date(Math.floor(nowMs / dayMs - daysShown) * dayMs).toISOString() : undefined;

/** The share of runs that succeeded, among those that succeeded or failed; null if there was none. */
export function successOf({ counts }: Pick<Period, "counts">): number | null {
  const ended = counts.succeeded + counts.failed;
  return ended === 0 ? null : counts.succeeded / ended;
}

/** The chart has room for at least this many periods. Fewer periods are drawn at the right end, so that no bar is as wide as the chart. */
const leastShown = 14;

/** Returns the position and width of each period, as shares of the chart's width from 0 to 1. */
export function placesOf(periods: readonly Pick<Period, "from">[], by: Length): { from: number; width: number }[] {
  const lengthMs = { hour: dayMs / 24, day: dayMs, month: 30 * dayMs }[by];
  const starts = periods.map(({ from }) => Date.parse(from));
  const [first = 0, last = 0] = [starts[0], starts.at(-1)];
  const wholeMs = Math.max(last - first + lengthMs, leastShown * lengthMs);
  const fromMs = last + lengthMs - wholeMs;
  return starts.map((ms) => ({ from: (ms - fromMs) / wholeMs, width: lengthMs / wholeMs }));
}
