/** The value of a browser's time field, `2026-10-25T02:30`, in a chosen zone: the browser itself would use its own zone. */
import { endOfTime, instantAt, zoneOf } from "carillon/schedule";

/** Years of a half-typed value are not looked up in a zone. */
const isMeant = (ms: number) => ms >= 0 && ms < endOfTime;

export function localText(ms: number, zone: string): string {
  const offset = isMeant(ms) ? zoneOf(zone).at(ms).offset : 0;
  return new Date(ms + offset).toISOString().slice(0, 16);
}

/** The first of two where clocks go back, and later by the gap in a gap. */
export function instantText(local: string, zone: string): string {
  const ms = Date.parse(`${local}Z`);
  return new Date(isMeant(ms) ? instantAt(zoneOf(zone), ms) : ms).toISOString();
}
