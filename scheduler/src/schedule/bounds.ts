/** A schedule's bounds: its first moment, its last moment, and the most slots. */
import { instant, instantOf, show, time, wrong } from "./given.ts";

/** Which slots of a schedule are kept. */
export interface Bounds {
  /** The schedule has no slot before this time. */
  fromMs?: number;
  /** The schedule has no slot after this time; a slot at this very time is the last one. */
  untilMs?: number;
  /** The most slots, counted from `fromMs`. */
  times?: number;
}

export interface BoundOptions {
  /** The schedule has no slot before this time: a Date, epoch milliseconds, or ISO 8601 with an offset or Z. Default: none. */
  from?: Date | number | string;
  /** The schedule has no slot after this time; a slot at this very time is the last one. Default: none. */
  until?: Date | number | string;
  /** The most slots, counted from `from`, including slots that are skipped or missed. Default: no limit. */
  times?: number;
}

export const shortIso = (ms: number) => new Date(ms).toISOString().replace(".000Z", "Z");

export const givenBounds = ({ from, until, times }: Partial<Record<"from" | "until" | "times", unknown>>) => ({
  fromMs: from === undefined ? undefined : instantOf(from, "from"),
  untilMs: until === undefined ? undefined : instantOf(until, "until"),
  times,
});

export const boundNames = ["fromMs", "untilMs", "times"] as const;
export const mostTimes = 1_000_000_000;
/** The most slots that are iterated to find the last one. */
export const mostTimesOfCron = 10_000;

export function boundsOf(given: Partial<Record<keyof Bounds, unknown>>, most: number): Bounds {
  const fromMs = given.fromMs === undefined ? undefined : instant("fromMs", given.fromMs);
  const untilMs = given.untilMs === undefined ? undefined : instant("untilMs", given.untilMs);
  const { times } = given;
  if (times === undefined) return boundsIn({ fromMs, untilMs });
  if (!Number.isSafeInteger(times) || (times as number) < 1 || (times as number) > most)
    throw wrong(`times: ${show(times)} is not a whole number from 1 to ${most}`, "For more, give until.");
  if (fromMs === undefined)
    throw wrong("times: there is no from to count from", "Give from, the moment of the first slot or one before it.");
  if (untilMs !== undefined) throw wrong("times and until: there is one end", "Leave one of the two out.");
  return { fromMs, times: times as number };
}

/** Returns only the bounds that are given. */
export const boundsIn = ({ fromMs, untilMs, times }: { [name in keyof Bounds]?: number | undefined }): Bounds => ({
  ...(fromMs === undefined ? {} : { fromMs }),
  ...(untilMs === undefined ? {} : { untilMs }),
  ...(times === undefined ? {} : { times }),
});

/** A schedule without bounds. */
interface Unbounded {
  next(afterMs: number): number | null;
  previous(beforeMs: number): number | null;
  words(): string;
}

/** The time of the last possible slot. @param everyMs the period of an interval; undefined: the slots are iterated */
export function lastOf(base: Unbounded, everyMs: number | undefined, { fromMs = 0, untilMs, times }: Bounds): number {
  if (times === undefined) return untilMs ?? Number.POSITIVE_INFINITY;
  let last = base.next(fromMs - 1);
  if (last !== null && everyMs !== undefined) return last + (times - 1) * everyMs;
  for (let more = times - 1; more > 0 && last !== null; more--) last = base.next(last);
  // The schedule has fewer slots than `times`, because its years end before.
  return last ?? Number.POSITIVE_INFINITY;
}

export const boundsKey = (bounds: Bounds): string => {
  const within = boundsIn(bounds);
  return Object.keys(within).length === 0 ? "" : `|${JSON.stringify(within)}`;
};

/** The slots of another schedule from one moment to another, or its first `times` slots. */
export class BoundedSchedule {
  readonly #base: Unbounded;
  readonly #bounds: Bounds;
  readonly #fromMs: number;
  readonly #lastMs: number;
  constructor(base: Unbounded, bounds: Bounds, lastMs: number) {
    this.#base = base;
    this.#bounds = bounds;
    this.#fromMs = bounds.fromMs ?? Number.NEGATIVE_INFINITY;
    this.#lastMs = lastMs;
  }
  next(afterMs: number): number | null {
    const next = this.#base.next(Math.max(time(afterMs), this.#fromMs - 1));
    return next === null || next > this.#lastMs ? null : next;
  }
  previous(beforeMs: number): number | null {
    const previous = this.#base.previous(Math.min(time(beforeMs), this.#lastMs + 1));
    return previous === null || previous < this.#fromMs ? null : previous;
  }
  words(): string {
    const { fromMs, untilMs, times } = this.#bounds;
    return [
      this.#base.words(),
      ...(fromMs === undefined ? [] : [`from ${shortIso(fromMs)}`]),
      ...(untilMs === undefined ? [] : [`until ${shortIso(untilMs)}`]),
      ...(times === undefined ? [] : [times === 1 ? "once" : `${times} times`]),
    ].join(", ");
  }
}
