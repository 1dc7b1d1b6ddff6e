/**
 * Suggests how to spread a fleet's slots better: which crons to move later, and by how many minutes, so that the fullest minutes become
 * less full; and, as an alternative, the effect of jitter on all crons. The algorithm is greedy, minute by minute from the fullest: no move
 * makes another minute as full as the minute that it empties.
 */
import { parseCron } from "../schedule/cron-parse.ts";
import { firstNames } from "./alike-tasks.ts";
import type { Timeline } from "./timeline.ts";

export interface Move {
  /** The task's name. */
  task: string;
  /** How many minutes later. */
  minutes: number;
  expression: string;
  becomes: string;
}

export interface Spread {
  /** The most runs that become due in one minute, before and after the moves. */
  peak: { before: number; after: number };
  /** Number of minutes that are fuller now than the fullest minute would be after the moves. */
  fuller: number;
  moves: Move[];
  /** The alternative of a random delay within `minutes` for every movable cron: `peak` is the highest load of a minute on average. */
  jitter: { minutes: number; peak: number }[];
}

/** A cron that fires more often than this on average is never moved: it has no minute of its own. */
const oftenMinutes = 15;
const candidatesMost = 60;
/** The search ends after this many full minutes from which no cron can be moved. */
const givenMost = 50;
const jitters = [2, 5, 10, 15];

/** Crons that fire at the same times, and those of them that are not moved yet. */
interface Movable {
  expression: string;
  minutes: readonly number[];
  /** Their names in order, as many as can be moved. */
  names: string[];
}

/** @param within the most minutes by which a task may be moved later */
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
      // No move from this minute improves it: continue with the next fullest.
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

/** @returns undefined if no move makes the minute `peak` less full without making another one as full */
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

/** Uses reduce instead of Math.max(...values), because there are more values than a call can have arguments. */
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
 * The same cron `minutes` later; null if the shifted minutes would leave the hour. "0,30 8 * * *" by 5 is "5,35 8 * * *", and 0/15 becomes
 * 5/15: each value in the field of minutes moves.
 */
export function shifted(expression: string, minutes: number): string | null {
  const fields = expression.trim().split(/\s+/);
  const at = fields.length >= 6 ? 1 : 0;
  const field = fields[at];
  if (fields.length < 5 || field === undefined) return null;
  const parts = field.split(",").map((part) => shiftedPart(part, minutes));
  if (parts.includes(null)) return null;
  const text = fields.with(at, parts.join(",")).join(" ");
  // A final check of the text: its minutes must be the old ones, each `minutes` later.
  return minutesOf(expression) << BigInt(minutes) === minutesOf(text) ? text : null;
}

/** A bit set of the cron's minutes: bit n is set for minute n. */
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
