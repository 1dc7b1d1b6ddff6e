import { expect } from "vitest";
import { median } from "../../../zookeeper/test/support/median.ts";
import type { Seen } from "./programs.ts";
import { stalledMs } from "./programs.ts";

export interface Figure {
  /** The measured values, in ms. */
  ms: number;
  /** The control: the same values without a fault, measured in the same run, in ms. */
  controlMs?: number;
  /** The bound, in ms. */
  mostMs: number;
}

/** Prints a figure beside its control and compares it with its bound. */
export function hold(what: string, { ms, controlMs, mostMs }: Figure): void {
  const control = controlMs === undefined ? "" : `, control ${controlMs.toFixed(1)} ms`;
  process.stdout.write(`  ${what}: ${ms.toFixed(1)} ms${control}, bound ${mostMs.toFixed(1)} ms\n`);
  expect(ms, what).toBeLessThanOrEqual(mostMs);
}

/**
 * Holds the lateness of runs while something was broken to that of runs before: its median and its greatest, each to three times
 * the control's, or to 100 ms and 1 s where that is more.
 * @param afterMs of each run while it was broken
 * @param beforeMs of each run before
 * @param addedMs by how much later than three times the control the latest may be
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

/** How late a run started, without the time for which its process was given no processor. In ms, by this machine's clock. */
export const lateMs = (seen: Seen, stalls: Seen[], fromMs = seen.slot) => seen.at - fromMs - stalledMs(stalls, seen);
