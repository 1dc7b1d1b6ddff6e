import { expect } from "vitest";
import { median } from "../../../zookeeper/test/support/median.ts";
import type { Seen } from "./programs.ts";
import { stalledMs } from "./programs.ts";

export interface Figure {
  /** The measured value, in ms. */
  ms: number;
  /** The value of the control, which was measured without a fault in the same run, in ms. */
  controlMs?: number;
  /** The largest allowed value, in ms. */
  mostMs: number;
}

/** Prints a figure beside its control, and expects that it is within its bound. */
export function hold(what: string, { ms, controlMs, mostMs }: Figure): void {
  const control = controlMs === undefined ? "" : `, control ${controlMs.toFixed(1)} ms`;
  process.stdout.write(`  ${what}: ${ms.toFixed(1)} ms${control}, bound ${mostMs.toFixed(1)} ms\n`);
  expect(ms, what).toBeLessThanOrEqual(mostMs);
}

/**
 * Compares the lateness of runs during a fault with that of runs before. The bound of the median is three times the control's, or 100 ms
 * if that is more. The bound of the greatest is three times the control's plus `addedMs`, or 1 s if that is more.
 * @param afterMs the lateness of each run during the fault, in ms
 * @param beforeMs the lateness of each run before the fault, in ms
 */
export function holdLateness(when: string, afterMs: readonly number[], beforeMs: readonly number[], addedMs = 0): void {
  expect(Math.min(beforeMs.length, afterMs.length)).toBeGreaterThan(30);
  hold(`median lateness ${when}`, {
    ms: median(afterMs),
    controlMs: median(beforeMs),
    mostMs: Math.max(100, 3 * median(beforeMs)),
  });
  hold(`greatest lateness ${when}`, {
    ms: Math.max(...afterMs),
    controlMs: Math.max(...beforeMs),
    mostMs: Math.max(1_000, addedMs + 3 * Math.max(...beforeMs)),
  });
}

/** Returns how late a run started, in ms by this machine's clock, without the time for which the machine delayed its process. */
export const lateMs = (seen: Seen, stalls: Seen[], fromMs = seen.slot) => seen.at - fromMs - stalledMs(stalls, seen);
