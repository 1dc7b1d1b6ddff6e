/**
 * Slots at a fixed period. Times are epoch milliseconds; slots are in [0, endOfTime).
 * Fixed rate: slots are at anchor + k × period for every integer k, so all nodes agree without communication. The anchor only shifts the
 * slots; slots exist before it too. Fixed delay: one slot, a period after the instant that the caller passes, which is the end of the last
 * run.
 */
import { endOfTime } from "./zone.ts";

export function nextAtRate(periodMs: number, anchorMs: number, after: number): number | null {
  // `after` is raised to at least −1, so that time 0 can be a slot.
  const past = Math.floor((Math.max(after, -1) - anchorMs) / periodMs);
  return within(anchorMs + (past + 1) * periodMs);
}

export function previousAtRate(periodMs: number, anchorMs: number, before: number): number | null {
  const coming = Math.ceil((Math.min(before, endOfTime) - anchorMs) / periodMs);
  return within(anchorMs + (coming - 1) * periodMs);
}

export function nextAfterDelay(periodMs: number, after: number): number | null {
  return within(Math.max(after + periodMs, 0));
}

function within(slot: number): number | null {
  return slot >= 0 && slot < endOfTime ? slot : null;
}
