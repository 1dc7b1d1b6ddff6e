/** Marks a slot before which the clocks of its zone were changed. */
import { zoneOf } from "carillon/schedule";
import { useWords } from "../messages/words.ts";
import { Tag } from "../parts/state/mark.tsx";

const minuteMs = 60_000;

/**
 * Returns by how many minutes the clocks went forward between two moments; negative if they went back, 0 if they did not change.
 */
export const turnBetween = (zone: string, fromMs: number, toMs: number): number =>
  (zoneOf(zone).at(toMs).offset - zoneOf(zone).at(fromMs).offset) / minuteMs;

/** Returns the first moment after `fromMs` and before `toMs` at which the zone's clocks change; undefined if there is none. */
export function nextTurn(zone: string, fromMs: number, toMs: number): number | undefined {
  for (const { from } of zoneOf(zone).transitions(fromMs, toMs)) return from;
  return undefined;
}

export function ClockTurn({ minutes }: { minutes: number }) {
  const { t } = useWords();
  if (minutes === 0) return null;
  return <Tag tone="late">{t(minutes > 0 ? "task.clocksForward" : "task.clocksBack", { n: Math.abs(minutes) })}</Tag>;
}
