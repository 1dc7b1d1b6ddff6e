import type { Beating } from "../cluster/session-store.ts";

/**
 * Heartbeats are spread over a common interval by the store's clock: nodes divide the interval evenly, and workers beat in its second
 * half, before the first node beats again. So a death is noticed at most half an interval after the last sign of life, not a whole one,
 * and members never all call the store at once. A member that beats at another moment or interval loses only these advantages.
 * @param nodes the ids of all nodes of the cluster, this one included @returns the session's moment in the interval, 0 to 1
 */
export function placeOf(sessionId: number, role: Beating["role"], nodes: readonly number[]): number {
  if (role === "worker") return 0.5 + 0.45 * ((sessionId * goldenRatio) % 1);
  const before = nodes.filter((other) => other < sessionId).length;
  return before / Math.max(nodes.length, 1);
}

const goldenRatio = 0.6180339887498949;
/** A beat that is off by less than this part of the interval counts as in place. */
const near = 0.05;
/** A member waits at least this part of a beat to reach its place. */
const least = 0.5;

/** @returns how long to wait for the next beat, so that this and the following ones come to `place`: never above `beatMs` */
export function untilBeat(storeMs: number, beatMs: number, place: number): number {
  const late = ((((storeMs - place * beatMs) % beatMs) + beatMs) % beatMs) / beatMs;
  if (late > 1 - near) return beatMs; // the timer was a little early: the next one corrects it
  return beatMs * Math.max(1 - late, least);
}
