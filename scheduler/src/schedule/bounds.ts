/** The bounds of a schedule: the earliest and the latest time of a slot, and the maximum number of slots. */
import { instant, instantOf, show, time, wrong } from "./given.ts";

/** Limits the slots of a schedule. */
export interface Bounds {
  /** The schedule has no slot before this time. */
  fromMs?: number;
  /** The schedule has no slot after this time; a slot exactly at this time is still included. */
  untilMs?: number;
  /** The maximum number of slots, counted from `fromMs`. */
  times?: number;
}

export interface BoundOptions {
  /** The schedule has no slot before this time: a Date, epoch milliseconds, or ISO 8601 with an offset or Z. Default: none. */
  from?: Date | number | string;
  /** The schedule has no slot after this time; a slot exactly at this time is still included. Default: no end. */
  until?: Date | number | string;
  /** The maximum number of slots, counted from `from`; slots that are skipped or missed count too. Default: no limit. */
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
/** The maximum `times` for schedules whose last slot is found by computing every slot. */
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

/** The schedule that the bounds are applied to. */
interface Unbounded {
  next(afterMs: number): number | null;
  previous(beforeMs: number): number | null;
  words(): string;
}

/** Returns the time of the last possible slot. @param everyMs the period of an interval; undefined: the slots are computed one by one */
export function lastOf(base: Unbounded, everyMs: number | undefined, { fromMs = 0, untilMs, times }: Bounds): number {
  if (times === undefined) return untilMs ?? Number.POSITIVE_INFINITY;
  let last = base.next(fromMs - 1);
  if (last !== null && everyMs !== undefined) return last + (times - 1) * everyMs;
  for (let more = times - 1; more > 0 && last !== null; more--) last = base.next(last);
  // null: the schedule has fewer slots than `times`, because the supported years end first, so no bound is needed.
  return last ?? Number.POSITIVE_INFINITY;
}

export const boundsKey = (bounds: Bounds): string => {
  const within = boundsIn(bounds);
  return Object.keys(within).length === 0 ? "" : `|${JSON.stringify(within)}`;
};

/** A schedule with the slots of another schedule that are within the bounds. */
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
