import { expect } from "vitest";
import type { Seen } from "./programs.ts";
import { stalledMs } from "./programs.ts";

export interface Figure {
  /** What was measured, in ms. */
  ms: number;
  /** The same where nothing was broken, measured in the same run; in ms. */
  controlMs?: number;
  /** The bound, in ms. */
  mostMs: number;
}

/** Prints a figure beside its control and holds it to its bound. */
export function hold(what: string, { ms, controlMs, mostMs }: Figure): void {
  const control = controlMs === undefined ? "" : `, control ${controlMs.toFixed(1)} ms`;
  process.stdout.write(`  ${what}: ${ms.toFixed(1)} ms${control}, bound ${mostMs.toFixed(1)} ms\n`);
  expect(ms, what).toBeLessThanOrEqual(mostMs);
}

/** How late a run started, without the time for which its process was given no processor. In ms, by this machine's clock. */
export const lateMs = (seen: Seen, stalls: Seen[], fromMs = seen.slot) => seen.at - fromMs - stalledMs(stalls, seen);
