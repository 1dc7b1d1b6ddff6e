import type { Seen } from "../seen.ts";
import { isEdited, pausesOf, type Rule } from "./rule.ts";
import { nominalOf, slotsOf } from "./slots.ts";

const dayMs = 86_400_000;
/** In every scenario the nearest working day is fewer than this number of days away. */
const farthest = 40;

/**
 * Returns when the slot of a nominal time runs: at that time on a working day, otherwise at the same time on the next or the previous
 * working day; null if the slot is skipped. Times are ms from the scenario's beginning, which is at midnight UTC.
 */
function placeOf(
  nominalMs: number,
  otherwise: "skip" | "next" | "previous",
  holidays: readonly number[],
): number | null {
  const day = Math.floor(nominalMs / dayMs);
  if (!holidays.includes(day)) return nominalMs;
  if (otherwise === "skip") return null;
  const way = otherwise === "next" ? 1 : -1;
  for (let days = 1; days < farthest; days++)
    if (!holidays.includes(day + way * days)) return nominalMs + way * days * dayMs;
  return null;
}

/** A slot on a day off is skipped, or moved to the next or the previous working day; other slots keep their times. */
export const calendars: Rule = {
  name: "a slot lies where its calendar puts it",
  page: "policies.md: calendar",
  check(seen: Seen) {
    const { holidays = [], acts } = seen.scenario;
    if (acts.some(({ op }) => op === "calendar")) return undefined;
    for (const [task, { slots, plans }] of seen.tasks.entries()) {
      const [{ plan, atMs } = { plan: undefined, atMs: 0 }] = plans;
      if (!plan?.calendar || isEdited(seen.scenario, task) || pausesOf(seen, task).length > 0) continue;
      const { otherwise } = plan.calendar;
      for (const nominalMs of slotsOf(seen, task)) {
        const row = slots.find((slot) => nominalOf(slot).includes(nominalMs));
        if (!row) continue; // a range may cover the slot; if nothing covers it, the rule `slotsAccounted` reports it
        const placeMs = placeOf(nominalMs, otherwise, holidays);
        const is = `slot ${nominalMs} of task ${task}, otherwise ${otherwise}, is ${row.outcome} at ${row.slotMs}`;
        // A slot that was moved to a time outside the schedule (before its definition or after its end) has no run.
        const isOver = placeMs !== null && (placeMs <= atMs || placeMs > seen.healedMs);
        if (placeMs === null || isOver) {
          if (row.outcome === "run" && row.slotMs !== placeMs) return `${is}: it has no place`;
        } else if (row.slotMs !== placeMs) return `${is}: its place is ${placeMs}`;
      }
    }
    return undefined;
  },
};
