/** What a browser's field for a time holds, `2026-10-25T02:30`, in a zone of one's choice: the browser itself means its own. */
import { endOfTime, instantAt, zoneOf } from "carillon/schedule";

/** Of years that nobody means, as one is half typed in, no zone is asked. */
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
