/**
 * Converts the local times of a cron, a rule or a calendar interval to instants, by the task's policy for daylight saving.
 *
 * A local time that exists once has one instant. A local time that is skipped (a gap) has no instant, or with `shift` the instant by the
 * offset before the gap, which is later by the gap's length; if another slot is at that instant, the two are one slot. A local time that
 * exists twice (an overlap) has its first instant, its last, or both.
 *
 * So within one span of constant offset the slots are the matches of local time, minus the part at its start or end that the policy for
 * overlaps suppresses, plus, after a gap, the matches within the gap. The search goes from span to span; where the next match is far away,
 * it jumps there.
 */
import type { LocalTimes } from "./local-times.ts";
import { endOfTime, type Zone } from "./zone.ts";

export const gapPolicies = ["skip", "shift"] as const;
export const foldPolicies = ["first", "last", "both"] as const;
export type GapPolicy = (typeof gapPolicies)[number];
export type FoldPolicy = (typeof foldPolicies)[number];

const dayMs = 86_400_000;
/** Local times near a transition or a jump's target differ from UTC by less than this. */
const leewayMs = 3 * dayMs;

/** The first slot strictly after an instant, or null. Slots lie in [0, endOfTime). */
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
    // After a short remaining part of a span, an overlap may repeat local times that were already passed, so the search may jump only over
    // a long one.
    const far = local - leewayMs;
    at = span.to - at >= leewayMs && far > span.to ? far : span.to;
  }
  return null;
}

/** The last slot strictly before an instant, or null. */
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
