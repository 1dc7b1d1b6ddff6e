/**
 * Suggests how to spread the slots of many tasks: which crons to move later, and by how many minutes, so that the fullest minutes get fewer
 * runs; and, as an alternative, the effect of jitter on all movable crons. The algorithm is greedy: it takes the fullest minute in turn,
 * and a move must not make another minute as full as the one it relieves.
 */
import { parseCron } from "../schedule/cron-parse.ts";
import { firstNames } from "./alike-tasks.ts";
import type { Timeline } from "./timeline.ts";

export interface Move {
  /** The task's name. */
  task: string;
  /** The number of minutes by which the cron is moved later. */
  minutes: number;
  expression: string;
  becomes: string;
}

export interface Spread {
  /** The highest number of runs that are due in one minute, before and after the moves. */
  peak: { before: number; after: number };
  /** The number of minutes that now have more runs than the fullest minute would have after the moves. */
  fuller: number;
  moves: Move[];
  /**
   * The alternative: every movable cron gets a random delay of up to `minutes`. `peak` is then the highest average number of runs in a
   * minute.
   */
  jitter: { minutes: number; peak: number }[];
}

/**
 * A cron that fires more often than once in this number of minutes, on average, is not moved, because moving it would relieve no minute.
 */
const oftenMinutes = 15;
const candidatesMost = 60;
/** The search ends after this number of full minutes that no move can relieve. */
const givenMost = 50;
const jitters = [2, 5, 10, 15];

/** Crons that fire at the same times. The names of crons that have been moved are removed from `names`. */
interface Movable {
  expression: string;
  minutes: readonly number[];
  /** The first names in order, up to the maximum number of moves. */
  names: string[];
}

/** @param within the maximum number of minutes by which a cron may be moved @param most the maximum number of moves */
export function suggestSpread(line: Timeline, { within, most }: { within: number; most: number }): Spread {
  const load = [...line.fires];
  const movable = new Map<number, Movable[]>();
  const still = [...line.fires];
  for (const { alike, minutes } of line.rhythms) {
    const { schedule } = alike.task.definition;
    if (minutes.length * oftenMinutes > load.length || schedule.type !== "cron" || (schedule.jitterMs ?? 0) > 0)
      continue;
    const one = { expression: schedule.expression, minutes, names: firstNames(alike, most) };
    for (const minute of new Set(minutes)) {
      const others = movable.get(minute);
      if (others) others.push(one);
      else movable.set(minute, [one]);
    }
    for (const minute of minutes) (still[minute] as number) -= alike.count;
  }
  const jitter = jitters.map((minutes) => ({ minutes, peak: jittered(line.fires, still, minutes) }));
  const given = new Set<number>();
  const moves: Move[] = [];
  while (moves.length < most && given.size < givenMost) {
    const peak = fullest(load, given);
    if (peak === null || (load[peak] as number) < 2) break;
    const candidates = (movable.get(peak) ?? []).filter(({ names }) => names.length > 0).slice(0, candidatesMost);
    const best = bestOf(candidates, load, peak, within);
    if (!best) {
      // No move relieves this minute, so the next fullest minute is tried.
      given.add(peak);
      continue;
    }
    const { from, ...move } = best;
    for (const minute of from.minutes) {
      (load[minute] as number)--;
      if (minute + move.minutes < load.length) (load[minute + move.minutes] as number)++;
    }
    moves.push({ task: from.names.shift() as string, ...move });
  }
  const peak = { before: highest(line.fires), after: highest(load) };
  return { peak, fuller: line.fires.filter((fires) => fires > peak.after).length, moves, jitter };
}

/** Returns the best move away from the minute `peak`. @returns undefined if no cron can move without making another minute as full */
function bestOf(candidates: Movable[], load: number[], peak: number, within: number) {
  let least = load[peak] as number;
  let best: (Omit<Move, "task"> & { from: Movable }) | undefined;
  for (const from of candidates) {
    for (let later = 1; later <= within; later++) {
      let full = 0;
      for (const minute of from.minutes) full = Math.max(full, (load[minute + later] ?? 0) + 1);
      if (full >= least) continue;
      const becomes = shifted(from.expression, later);
      if (becomes === null) continue;
      least = full;
      best = { from, minutes: later, expression: from.expression, becomes };
    }
  }
  return best;
}

/** Uses `reduce` instead of Math.max(...values), because a call cannot have this many arguments. */
const highest = (values: readonly number[]): number => values.reduce((a, b) => Math.max(a, b), 0);

function fullest(load: readonly number[], given: ReadonlySet<number>): number | null {
  let at: number | null = null;
  for (const [minute, fires] of load.entries())
    if (!given.has(minute) && (at === null || fires > (load[at] as number))) at = minute;
  return at;
}

function jittered(fires: readonly number[], still: readonly number[], minutes: number): number {
  let peak = 0;
  let window = 0;
  for (const [minute, all] of fires.entries()) {
    window += all - (still[minute] as number);
    if (minute >= minutes) window -= (fires[minute - minutes] as number) - (still[minute - minutes] as number);
    peak = Math.max(peak, (still[minute] as number) + window / minutes);
  }
  return Math.round(peak * 10) / 10;
}

/**
 * Returns the cron moved `minutes` later; null if a minute would leave its hour or the minute field cannot be moved. "0,30 8 * * *" moved
 * by 5 is "5,35 8 * * *", and 0/15 becomes 5-59/15, because every value in the minute field is moved.
 */
export function shifted(expression: string, minutes: number): string | null {
  const fields = expression.trim().split(/\s+/);
  const at = fields.length >= 6 ? 1 : 0;
  const field = fields[at];
  if (fields.length < 5 || field === undefined) return null;
  const parts = field.split(",").map((part) => shiftedPart(part, minutes));
  if (parts.includes(null)) return null;
  const text = fields.with(at, parts.join(",")).join(" ");
  // As a final check, the new expression must have exactly the old minutes, each `minutes` later.
  return minutesOf(expression) << BigInt(minutes) === minutesOf(text) ? text : null;
}

/** Returns the cron's minutes as a bit set: bit n is set for minute n. */
function minutesOf(expression: string): bigint {
  const { minutesLow, minutesHigh } = parseCron(expression).fields;
  return BigInt(minutesLow) | (BigInt(minutesHigh) << 30n);
}

function shiftedPart(part: string, minutes: number): string | null {
  const [, from = "", to, step] = /^(\*|\d+)(?:-(\d+))?(?:\/(\d+))?$/.exec(part) ?? [];
  if (from === "" || (from === "*" && (step === undefined || to !== undefined))) return null;
  const first = (from === "*" ? 0 : Number(from)) + minutes;
  if (step === undefined) {
    const last = to === undefined ? undefined : Number(to) + minutes;
    return first > 59 || (last ?? 0) > 59 ? null : last === undefined ? String(first) : `${first}-${last}`;
  }
  const last = Math.min(59, (to === undefined ? 59 : Number(to)) + minutes);
  return first > last ? null : `${first}-${last}/${step}`;
}
