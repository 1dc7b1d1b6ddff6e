/**
 * Blackout windows: times in which slots of a task do not start. A slot that is due in a window is skipped, or runs at the window's end.
 * Windows apply only to slots, not to enqueued runs, retries, or runs that wait for a concurrency limit.
 */
import { beginOf, dayMs, localDayOf } from "./calendar.ts";
import type { Judgement } from "./schedule.ts";
import { zoneOf } from "./zone.ts";

/** A window in a task's definition. Its end is exclusive. */
export type BlackoutWindow =
  | {
      /** Local times of day, such as "22:00". If `to` is not later than `from`, the window ends on the next day. */
      from: string;
      to: string;
      zone: string;
      /** The weekdays on which the window begins, from 0 (Sunday) to 6; null: every day. */
      days: number[] | null;
      then: "skip" | "delay";
    }
  | {
      fromMs: number;
      toMs: number;
      then: "skip" | "delay";
    };

/** A slot is skipped if windows would delay it by more than this time, in ms. */
const delayedMaxMs = 366 * dayMs;

export const minutesOf = (text: string): number => Number(text.slice(0, 2)) * 60 + Number(text.slice(3, 5));

interface Occurrence {
  startMs: number;
  endMs: number;
}

/** Returns the occurrence of the window that contains the instant; null if there is none. */
export function occurrenceAt(window: BlackoutWindow, ms: number): Occurrence | null {
  if ("fromMs" in window)
    return ms >= window.fromMs && ms < window.toMs ? { startMs: window.fromMs, endMs: window.toMs } : null;
  const zone = zoneOf(window.zone);
  const [from, to] = [minutesOf(window.from), minutesOf(window.to)];
  const span = zone.at(ms);
  const today = localDayOf(zone, ms);
  // The occurrence began today, or yesterday if the window ends on the next day.
  for (const day of to <= from ? [today - 1, today] : [today]) {
    if (window.days !== null && !window.days.includes((((day + 4) % 7) + 7) % 7)) continue;
    const first = day * dayMs + from * 60_000;
    const last = (to <= from ? day + 1 : day) * dayMs + to * 60_000;
    const [startMs, endMs] = [beginOf(zone, first), beginOf(zone, last)];
    if (ms >= startMs && ms < endMs) return { startMs, endMs };
    // `startMs` and `endMs` are in the first pass of a repeated hour. The window applies again in the second pass.
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
 * Caches, for each instant, which window contains it and when that window ends. The end of a delaying window may be in the next window, so
 * slots can be delayed along a long chain of windows; with the cache, each link is computed only once.
 */
export type Steps = Map<number, Step>;

interface Step {
  /**
   * The first window with `skip` that contains the instant; else the last window that delays and contains it; undefined if no
   * window contains it.
   */
  window: BlackoutWindow | undefined;
  endMs: number;
}

/**
 * The number of windows in a chain that are computed without the cache. In a longer chain of windows without gaps, each judgement
 * would follow the chain for up to a year, so the cache is used.
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
 * Returns the end of the time, from `dueMs` on, in which runs are judged like a run at `dueMs`. It is the earliest end of the windows that
 * contain `dueMs`, or the start of another window that covers this end. Another window that ends earlier is ignored, because runs in it
 * are still in all windows that contain `dueMs`.
 */
function heldAlike(windows: readonly BlackoutWindow[], dueMs: number): number {
  const held = windows.map((window) => occurrenceAt(window, dueMs));
  const endMs = Math.min(...held.map((one) => one?.endMs ?? Number.POSITIVE_INFINITY));
  const begun = windows.map((window, at) => (held[at] ? endMs : (occurrenceAt(window, endMs - 1)?.startMs ?? endMs)));
  return Math.min(...begun);
}

/**
 * Decides about a run that is due at `dueMs`; returns undefined if no window contains that time. A window with `skip` takes precedence over
 * windows that delay. If the run is skipped, runs that are due before `untilMs` are skipped as well.
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
