import type { LockHistory } from "../../lock-history.ts";
import { beliefsOf, overlapsOf } from "./beliefs.ts";
import { staleWrite } from "./writes-fenced.ts";

export interface LockFigures {
  readonly holders: number;
  readonly vanished: number;
  readonly writes: number;
  /** The number of late writes that the resource refused. */
  readonly refused: number;
  /** The violation that would have occurred if the resource did not check fences; undefined: none. */
  readonly unfenced: string | undefined;
  /**
   * `overlaps`: the number of periods in which more processes believed that they had a lock than it has permits; `overlap_ms_max`:
   * the length of the longest of these periods, in ms.
   */
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
