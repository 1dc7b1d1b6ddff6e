import type { LockHistory } from "../../lock-history.ts";
import { beliefsOf, overlapsOf } from "./beliefs.ts";
import { staleWrite } from "./writes-fenced.ts";

export interface LockFigures {
  readonly holders: number;
  readonly vanished: number;
  readonly writes: number;
  /** Writes that came too late, and were not taken. */
  readonly refused: number;
  /** What would have been broken where nobody looks at fences. */
  readonly unfenced: string | undefined;
  /** How often more believed that they have a lock than it has permits, and for how long at most. */
  readonly overlaps: number;
  readonly overlap_ms_max: number;
}

export function lockFigures(history: LockHistory): LockFigures {
  const { grants, writes } = history;
  const overlaps = overlapsOf(beliefsOf(history));
  return {
    holders: grants.length,
    vanished: grants.filter(({ ended }) => ended === "vanished").length,
    writes: writes.length,
    refused: writes.filter(({ accepted }) => !accepted).length,
    unfenced: staleWrite(writes)?.what,
    overlaps: overlaps.length,
    overlap_ms_max: Math.round(Math.max(0, ...overlaps.map(({ forMs }) => forMs))),
  };
}
