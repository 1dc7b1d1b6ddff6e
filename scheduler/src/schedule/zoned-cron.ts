/**
 * Converts the local times of a cron, a recurrence rule or a calendar interval to instants, by the task's policies for daylight
 * saving. A local time that exists once gives one instant. A skipped local time (in a gap) gives no instant with the policy
 * `skip`; with `shift`, it gives the instant computed with the offset before the gap, which is later by the length of the gap. If
 * another slot is at that instant, the two are one slot. A repeated local time (in an overlap) gives its first instant, its last
 * instant, or both. Within a span of constant offset, the slots are therefore the matching local times, without the part at its
 * start or end that the overlap policy leaves out, plus, after a gap, the matches within the gap. The search goes from span to
 * span, and jumps ahead if the next match is far away.
 */
import type { LocalTimes } from "./local-times.ts";
import { endOfTime, type Zone } from "./zone.ts";

export const gapPolicies = ["skip", "shift"] as const;
export const foldPolicies = ["first", "last", "both"] as const;
export type GapPolicy = (typeof gapPolicies)[number];
export type FoldPolicy = (typeof foldPolicies)[number];

const dayMs = 86_400_000;
/** More than the largest difference between a local time and UTC, including gaps and overlaps. */
const leewayMs = 3 * dayMs;

/** Returns the first slot strictly after an instant; null if there is none. Slots are in [0, endOfTime). */
export function nextInZone(
  times: LocalTimes,
  zone: Zone,
  gap: GapPolicy,
  overlap: FoldPolicy,
  after: number,
): number | null {
  let at = Math.max(Math.floor(after / 1000) * 1000 + 1000, 0);
  while (at < endOfTime) {
    const span = zone.at(at);
    if (overlap === "first" && span.entered < 0 && at < span.from - span.entered) {
      at = Math.min(span.from - span.entered, span.to);
      if (at === span.to) continue;
    }
    const end = overlap === "last" && span.left < 0 ? span.to + span.left : span.to;
    const local = times.nextLocal(at + span.offset);
    let best = local - span.offset;
    if (best >= end) best = Number.POSITIVE_INFINITY;
    if (gap === "shift" && span.entered > 0 && at < span.from + span.entered) {
      const before = span.offset - span.entered;
      const shifted = times.nextLocal(at + before) - before;
      if (shifted < Math.min(span.from + span.entered, span.to)) best = Math.min(best, shifted);
    }
    if (best < endOfTime) return best;
    // If only a short part of the span is left, the next span may repeat local times, so that an earlier match occurs again. The search
    // therefore jumps only if a long part of the span is left.
    const far = local - leewayMs;
    at = span.to - at >= leewayMs && far > span.to ? far : span.to;
  }
  return null;
}

/** Returns the last slot strictly before an instant; null if there is none. */
export function previousInZone(
  times: LocalTimes,
  zone: Zone,
  gap: GapPolicy,
  overlap: FoldPolicy,
  before: number,
): number | null {
  let at = Math.min(Math.ceil(before / 1000) * 1000, endOfTime) - 1000;
  while (at >= 0) {
    const span = zone.at(at);
    if (overlap === "last" && span.left < 0 && at >= span.to + span.left) {
      at = span.to + span.left - 1000;
      if (at < span.from) {
        at = span.from - 1000;
        continue;
      }
    }
    const start = overlap === "first" && span.entered < 0 ? span.from - span.entered : span.from;
    const local = times.previousLocal(at + span.offset);
    let best = local - span.offset;
    if (best < start) best = Number.NEGATIVE_INFINITY;
    if (gap === "shift" && span.entered > 0) {
      const offset = span.offset - span.entered;
      const shifted = times.previousLocal(Math.min(at, span.from + span.entered - 1000) + offset) - offset;
      if (shifted >= span.from) best = Math.max(best, shifted);
    }
    if (best >= 0) return best;
    const far = local + leewayMs;
    at = at - span.from >= leewayMs && far < span.from ? far : span.from - 1000;
  }
  return null;
}
