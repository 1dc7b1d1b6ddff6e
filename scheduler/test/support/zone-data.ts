import { zoneOf } from "../../src/schedule/zone.ts";
import type { Stage } from "./store-stage.ts";

/** A version of the time zone database that is later than any real one. */
export const newerData = "9999z";
/** A version of the time zone database that is earlier than any real one. */
export const olderData = "1900a";

/** Returns rules for a zone, from years ago to years ahead, with one offset: that of the zone at `nowMs`, plus `shiftMs`. */
export const rulesBy = (zone: string, shiftMs: number, nowMs: number) => ({
  starts: [nowMs - 800 * 86_400_000],
  offsets: [zoneOf(zone).at(nowMs).offset + shiftMs],
  to: nowMs + 8_000 * 86_400_000,
});

/**
 * Stores changed rules of a zone, as a node with another version of the time zone database does. The rules come into force, but no task is
 * planned by them yet.
 */
export async function plantRules(
  stage: Stage,
  zone: string,
  shiftMs: number,
  nowMs: number,
  data = newerData,
): Promise<void> {
  const { starts, offsets, to } = rulesBy(zone, shiftMs, nowMs);
  await stage.rows(
    `with next as (update $s.cluster set zones_version = zones_version + 1 returning zones_version)
     insert into $s.zone_rules (name, version, data, starts_ms, offsets_ms, to_ms) select $1, zones_version, $2, $3, $4, $5 from next`,
    [zone, data, starts.map(Math.round), offsets, Math.round(to)],
  );
}
