/**
 * Blackout windows: times in which slots of a task do not start. A slot that would become due in one is skipped, or runs at
 * the window's end. Only slots: what is enqueued, tried again or waits for a place is not held back.
 */
import { dayMs, instantAt, localDayOf } from "./calendar.ts";
import type { Judgement } from "./schedule.ts";
import { zoneOf } from "./zone.ts";

/** As a task's definition has it. Its end is the first moment outside. */
export type BlackoutWindow =
  | {
      /** Local times of day, "22:00"; one that ends before it begins goes over midnight. */
      from: string;
      to: string;
      zone: string;
      /** The days on which it begins, 0 (Sunday) to 6; null: every day. */
      days: number[] | null;
      then: "skip" | "delay";
    }
  | {
      fromMs: number;
      toMs: number;
      then: "skip" | "delay";
    };

/** A slot that windows would delay by more is skipped. */
const delayedMaxMs = 366 * dayMs;

export const minutesOf = (text: string): number => Number(text.slice(0, 2)) * 60 + Number(text.slice(3, 5));

/** The end of the window at this instant; null: it lies outside. */
export function endOfWindow(window: BlackoutWindow, ms: number): number | null {
  if ("fromMs" in window) return ms >= window.fromMs && ms < window.toMs ? window.toMs : null;
  const zone = zoneOf(window.zone);
  const [from, to] = [minutesOf(window.from), minutesOf(window.to)];
  const today = localDayOf(zone, ms);
  // It began today, or yesterday and goes over midnight.
  for (const day of to <= from ? [today - 1, today] : [today]) {
    if (window.days !== null && !window.days.includes((((day + 4) % 7) + 7) % 7)) continue;
    const start = instantAt(zone, day * dayMs + from * 60_000);
    const end = instantAt(zone, (to <= from ? day + 1 : day) * dayMs + to * 60_000);
    if (ms >= start && ms < end) return end;
  }
  return null;
}

const wordsOf = (window: BlackoutWindow) =>
  "fromMs" in window
    ? `blackout ${new Date(window.fromMs).toISOString()} to ${new Date(window.toMs).toISOString()}`
    : `blackout ${window.from} to ${window.to} ${window.zone}`;

/** What the windows make of a run due then; undefined: nothing. One that says skip holds over those that delay. */
export function blackedOut(windows: readonly BlackoutWindow[], dueMs: number): Judgement | undefined {
  let at = dueMs;
  let last: BlackoutWindow | undefined;
  while (at - dueMs <= delayedMaxMs) {
    let end = at;
    for (const window of windows) {
      const until = endOfWindow(window, at);
      if (until === null) continue;
      if (window.then === "skip") return { dueMs, skipped: wordsOf(window) };
      end = Math.max(end, until);
      last = window;
    }
    if (end === at) return last && { dueMs: at, note: `${wordsOf(last)}: delayed` };
    at = end;
  }
  return { dueMs, skipped: `${last ? wordsOf(last) : "blackout"}: it would be delayed by more than a year` };
}
