/**
 * Blackout windows: times in which slots of a task do not start. A slot that would become due in a window is skipped, or runs at the
 * window's end. Only slots are held back, not enqueued runs, retries, or runs that wait for a concurrency limit.
 */
import { beginOf, dayMs, localDayOf } from "./calendar.ts";
import type { Judgement } from "./schedule.ts";
import { zoneOf } from "./zone.ts";

/** A window in a task's definition. The end is exclusive. */
export type BlackoutWindow =
  | {
      /** Local times of day, such as "22:00"; a window whose end is not after its beginning continues past midnight. */
      from: string;
      to: string;
      zone: string;
      /** The days on which the window begins, 0 (Sunday) to 6; null: every day. */
      days: number[] | null;
      then: "skip" | "delay";
    }
  | {
      fromMs: number;
      toMs: number;
      then: "skip" | "delay";
    };

/** A slot that windows would delay by more than this is skipped. */
const delayedMaxMs = 366 * dayMs;

export const minutesOf = (text: string): number => Number(text.slice(0, 2)) * 60 + Number(text.slice(3, 5));

interface Occurrence {
  startMs: number;
  endMs: number;
}

/** The occurrence of the window that contains the instant; null if none does. */
export function occurrenceAt(window: BlackoutWindow, ms: number): Occurrence | null {
  if ("fromMs" in window)
    return ms >= window.fromMs && ms < window.toMs ? { startMs: window.fromMs, endMs: window.toMs } : null;
  const zone = zoneOf(window.zone);
  const [from, to] = [minutesOf(window.from), minutesOf(window.to)];
  const span = zone.at(ms);
  const today = localDayOf(zone, ms);
  // The occurrence began today, or it began yesterday and continues past midnight.
  for (const day of to <= from ? [today - 1, today] : [today]) {
    if (window.days !== null && !window.days.includes((((day + 4) % 7) + 7) % 7)) continue;
    const first = day * dayMs + from * 60_000;
    const last = (to <= from ? day + 1 : day) * dayMs + to * 60_000;
    const [startMs, endMs] = [beginOf(zone, first), beginOf(zone, last)];
    if (ms >= startMs && ms < endMs) return { startMs, endMs };
    // `startMs` and `endMs` use the first pass of a repeated hour; in the second pass the window applies again.
    const again = { startMs: Math.max(span.from, first - span.offset), endMs: last - span.offset };
    if (ms < span.from - span.entered && ms >= again.startMs && ms < again.endMs) return again;
  }
  return null;
}

const wordsOf = (window: BlackoutWindow) =>
  "fromMs" in window
    ? `blackout ${new Date(window.fromMs).toISOString()} to ${new Date(window.toMs).toISOString()}`
    : `blackout ${window.from} to ${window.to} ${window.zone}`;

/**
 * Cache of the step from each instant. The end of one window that delays may be in the next window, and each step of a long chain is
 * computed once.
 */
export type Steps = Map<number, Step>;

interface Step {
  /** The last window that contains the instant; the first window with `skip` takes precedence. undefined: no window contains it. */
  window: BlackoutWindow | undefined;
  endMs: number;
}

/**
 * A chain of more windows than this is cached: if windows follow each other without gaps, each judgement would otherwise follow the chain
 * for a year.
 */
const shortRow = 16;
const stepsKept = 2_000;

function stepFrom(windows: readonly BlackoutWindow[], at: number): Step {
  const step: Step = { window: undefined, endMs: at };
  for (const window of windows) {
    const held = occurrenceAt(window, at);
    if (held === null) continue;
    if (window.then === "skip") return { window, endMs: held.endMs };
    step.endMs = Math.max(step.endMs, held.endMs);
    step.window = window;
  }
  return step;
}

function rememberedStep(steps: Steps, windows: readonly BlackoutWindow[], at: number): Step {
  let step = steps.get(at);
  if (!step) {
    step = stepFrom(windows, at);
    if (steps.size >= stepsKept) steps.clear();
    steps.set(at, step);
  }
  return step;
}

/**
 * Returns the instant up to which later due times are in the same windows. Further windows that begin and end before it only add to these.
 */
function heldAlike(windows: readonly BlackoutWindow[], dueMs: number): number {
  const held = windows.map((window) => occurrenceAt(window, dueMs));
  const endMs = Math.min(...held.map((one) => one?.endMs ?? Number.POSITIVE_INFINITY));
  const begun = windows.map((window, at) => (held[at] ? endMs : (occurrenceAt(window, endMs - 1)?.startMs ?? endMs)));
  return Math.min(...begun);
}

/**
 * Judges a run that is due at `dueMs`; returns undefined if no window contains that time. A window with `skip` takes precedence over
 * windows that delay. If the run is skipped, runs due before `untilMs` are skipped as well.
 */
export function blackedOut(
  windows: readonly BlackoutWindow[],
  dueMs: number,
  steps: Steps = new Map(),
): Judgement | undefined {
  let at = dueMs;
  let last: BlackoutWindow | undefined;
  for (let passed = 0; at - dueMs <= delayedMaxMs; passed++) {
    const { window, endMs } = passed < shortRow ? stepFrom(windows, at) : rememberedStep(steps, windows, at);
    if (window?.then === "skip")
      return { dueMs, skipped: wordsOf(window), untilMs: passed === 0 ? endMs : heldAlike(windows, dueMs) };
    if (!window) return last && { dueMs: at, note: `${wordsOf(last)}: delayed` };
    last = window;
    at = endMs;
  }
  const skipped = `${last ? wordsOf(last) : "blackout"}: it would be delayed by more than a year`;
  return { dueMs, skipped, untilMs: at - delayedMaxMs };
}
