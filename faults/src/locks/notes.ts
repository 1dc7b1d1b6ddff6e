import { existsSync } from "node:fs";
import { wholeLines } from "../../../scheduler/test/support/whole-lines.ts";

/** The lines that a process which uses locks logs, each in one write, so that a line survives a kill. */
export type LockNote =
  | { n: "got"; lock: string; process: string; holding: string; fence: number; askedMs: number; atMs: number }
  /** At `atMs` the process checked that it holds the lock. */
  | { n: "look"; lock: string; process: string; holding: string; fence: number | null; atMs: number }
  | { n: "releasing"; lock: string; process: string; fence: number; atMs: number }
  | { n: "released"; lock: string; process: string; fence: number; changed: boolean };

export function readNotes(log: string): LockNote[] {
  if (!existsSync(log)) return [];
  return wholeLines(log).map((line) => JSON.parse(line) as LockNote);
}

/**
 * Returns epoch ms on a clock that does not jump while the process runs. All processes of the machine agree on it, unless the wall clock
 * is set between their starts.
 */
export const machineMs = (): number => performance.timeOrigin + performance.now();
