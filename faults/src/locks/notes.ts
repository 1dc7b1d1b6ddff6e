import { existsSync } from "node:fs";
import { wholeLines } from "../../../scheduler/test/support/whole-lines.ts";

/** The notes of a process that uses locks: one line each, in one write, so that a note survives a kill. */
export type LockNote =
  | { n: "got"; lock: string; process: string; holding: string; fence: number; askedMs: number; atMs: number }
  /** The process checked at that moment that it has the lock. */
  | { n: "look"; lock: string; process: string; holding: string; fence: number | null; atMs: number }
  | { n: "releasing"; lock: string; process: string; fence: number; atMs: number }
  | { n: "released"; lock: string; process: string; fence: number; changed: boolean };

export function readNotes(log: string): LockNote[] {
  if (!existsSync(log)) return [];
  return wholeLines(log).map((line) => JSON.parse(line) as LockNote);
}

/** Epoch ms by a clock that does not step while a process lives, and that reads alike in all processes of one machine. */
export const machineMs = (): number => performance.timeOrigin + performance.now();
