import { compileSchedule, type ScheduleSpec } from "../../schedule/schedule.ts";
import type { Zone } from "../../schedule/zone.ts";
import { offsetText, spanText } from "../screen/times.ts";

/**
 * Describes how a change of clocks (DST) affects a slot: its local time occurs twice or does not exist, or its UTC offset differs from that
 * of the previous slot. Returns "" if none of these applies.
 */
export function clockChange(spec: ScheduleSpec, slotMs: number, previousMs: number | null, zone: Zone): string {
  const span = zone.at(slotMs);
  const notes: string[] = [];
  const before = previousMs === null ? span.offset : zone.at(previousMs).offset;
  if (before !== span.offset) {
    const way = span.offset > before ? "forward" : "back";
    notes.push(
      `clocks went ${way} ${spanText(Math.abs(span.offset - before))}, ${offsetText(before)} → ${offsetText(span.offset)}`,
    );
  }
  if (span.entered < 0 && slotMs - span.from < -span.entered) notes.push("this local time comes twice: the second");
  if (span.left < 0 && span.to - slotMs <= -span.left) notes.push("this local time comes twice: the first");
  if (span.entered > 0 && slotMs - span.from < span.entered && "zone" in spec) {
    // UTC skips no local time. So if the schedule, evaluated in UTC, has a slot at this local time, the slot was not shifted.
    const localMs = slotMs + span.offset;
    const named = compileSchedule({ ...spec, zone: "UTC" }).next(localMs - 1) === localMs;
    const missing = new Date(localMs - span.entered).toISOString().slice(11, 16);
    if (!named) notes.push(`${missing} does not exist: shifted by ${spanText(span.entered)}`);
  }
  return notes.join("; ");
}
