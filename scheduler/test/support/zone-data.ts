import { zoneOf } from "../../src/schedule/zone.ts";
import type { Stage } from "./store-stage.ts";

/** A version of the time zone database later than any existing one. */
export const newerData = "9999z";
/** A version earlier than any existing one. */
export const olderData = "1900a";

/** A zone's rules from years ago to years ahead: its own offset at `nowMs`, plus a difference. */
export const rulesBy = (zone: string, shiftMs: number, nowMs: number) => ({
  starts: [nowMs - 800 * 86_400_000],
  offsets: [zoneOf(zone).at(nowMs).offset + shiftMs],
  to: nowMs + 8_000 * 86_400_000,
});

/** Stores the rules of a node with another version of the time zone database: they come into force, and no task is planned anew yet. */
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
