import type { Beating } from "../cluster/session-store.ts";

/**
 * Returns the session's moment within the heartbeat interval, from 0 to 1. Heartbeats are spread over the interval by the store's clock:
 * the nodes divide the interval evenly, and the workers send theirs in its second half. So some node reads a heartbeat at most half an
 * interval after it was sent instead of up to a whole one, and notices a missing heartbeat that much earlier; and the members do not all
 * call the store at once. A member that sends heartbeats at another moment or interval only loses these advantages.
 * @param nodes the sessions of all nodes of the cluster, including this one
 */
export function placeOf(sessionId: number, role: Beating["role"], nodes: readonly number[]): number {
  if (role === "worker") return 0.5 + 0.45 * ((sessionId * goldenRatio) % 1);
  const before = nodes.filter((other) => other < sessionId).length;
  return before / Math.max(nodes.length, 1);
}

const goldenRatio = 0.6180339887498949;
/** A heartbeat that is early by less than this part of the interval counts as punctual. */
const near = 0.05;
/** The shortest wait until the next heartbeat, as a part of the interval. */
const least = 0.5;

/** Returns the wait in ms until the next heartbeat at the moment `place` of the interval; at most `beatMs`. */
export function untilBeat(storeMs: number, beatMs: number, place: number): number {
  const late = ((((storeMs - place * beatMs) % beatMs) + beatMs) % beatMs) / beatMs;
  if (late > 1 - near) return beatMs; // the timer fired a little early; the next wait corrects that
  return beatMs * Math.max(1 - late, least);
}
