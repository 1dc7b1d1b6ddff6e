/** The value of a browser's time field, `2026-10-25T02:30`, in a chosen zone: the browser itself would use its own zone. */
import { endOfTime, instantAt, zoneOf } from "carillon/schedule";

/** False for the impossible years of a half-typed value. */
const isMeant = (ms: number) => ms >= 0 && ms < endOfTime;

export function localText(ms: number, zone: string): string {
  const offset = isMeant(ms) ? zoneOf(zone).at(ms).offset : 0;
  return new Date(ms + offset).toISOString().slice(0, 16);
}

/**
 * Converts a local time into an instant. A repeated hour (DST) gives the first instant; a time in a skipped hour is moved later by
 * the gap.
 */
export function instantText(local: string, zone: string): string {
  const ms = Date.parse(`${local}Z`);
  return new Date(isMeant(ms) ? instantAt(zoneOf(zone), ms) : ms).toISOString();
}
