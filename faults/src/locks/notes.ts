import { existsSync } from "node:fs";
import { wholeLines } from "../../../scheduler/test/support/whole-lines.ts";

/** What a process that uses locks writes down of itself: one line each, in one write, so that it outlives a kill. */
export type LockNote =
  | { n: "got"; lock: string; process: string; holding: string; fence: number; askedMs: number; atMs: number }
  /** It was asked at that moment whether it has it, and said yes. */
  | { n: "look"; lock: string; process: string; holding: string; fence: number | null; atMs: number }
  | { n: "releasing"; lock: string; process: string; fence: number; atMs: number }
  | { n: "released"; lock: string; process: string; fence: number; changed: boolean };

export function readNotes(log: string): LockNote[] {
  if (!existsSync(log)) return [];
  return wholeLines(log).map((line) => JSON.parse(line) as LockNote);
}

/** Epoch ms by a clock that does not step while a process lives, and that all processes of one machine read alike. */
export const machineMs = (): number => performance.timeOrigin + performance.now();
