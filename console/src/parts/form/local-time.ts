/** The text of a time field, such as `2026-10-25 02:30`. The browser's own field is not used, because it may write 10/25/2026. */
import { endOfTime, instantAt, zoneOf } from "carillon/schedule";

const dayMs = 86_400_000;

/** False for times before 1970 or after the last supported year, which occur while the user is still typing the year. */
const isMeant = (ms: number) => ms >= 0 && ms < endOfTime;

export function localText(ms: number, zone: string): string {
  const offset = isMeant(ms) ? zoneOf(zone).at(ms).offset : 0;
  return new Date(ms + offset).toISOString().slice(0, 16).replace("T", " ");
}

/**
 * Converts a local time into an instant. A repeated hour (DST) gives the first instant; a time in a skipped hour is moved later by
 * the gap.
 */
const instantOf = (local: number, zone: string): number => instantAt(zoneOf(zone), local);

const dated = /^(\d{4}-\d{2}-\d{2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2}))?)?$/;
const clock = /^(\d{1,2}):(\d{2})$/;
const absolute = /^\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2})$/;

/** Decides which time a time of day without a date means: the next time that the clocks show it, or the last time. */
export type Side = "next" | "last";

/**
 * Parses typed text: `2026-10-25 02:30`, a day alone, a time of day alone, or an instant with its offset, as copied from a log.
 * @returns epoch ms; undefined if the text is not a time
 */
export function readTime(typed: string, zone: string, nowMs: number, side: Side): number | undefined {
  const text = typed.trim();
  if (absolute.test(text)) return meant(Date.parse(text));
  const day = dated.exec(text);
  if (day) return meant(localOf(day[1] as string, day[2], day[3], day[4]), zone);
  const time = clock.exec(text);
  if (!time) return undefined;
  const today = localText(nowMs, zone).slice(0, 10);
  const local = localOf(today, time[1], time[2]);
  const at = meant(local, zone);
  if (at === undefined || (side === "next" ? at > nowMs : at <= nowMs)) return at;
  return meant(local + (side === "next" ? dayMs : -dayMs), zone);
}

/** The local time as if it were UTC; NaN if there is no such day or time of day. */
function localOf(day: string, hours = "0", minutes = "00", seconds = "00"): number {
  const ms = Date.parse(`${day}T${hours.padStart(2, "0")}:${minutes}:${seconds}Z`);
  // Date.parse takes 30 February for 2 March, and 24:00 for the next day.
  return Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== day ? Number.NaN : ms;
}

function meant(ms: number, zone?: string): number | undefined {
  if (Number.isNaN(ms) || !isMeant(ms)) return undefined;
  return zone === undefined ? ms : instantOf(ms, zone);
}
