/**
 * Determines which nominal times of a task's schedule (its times before a calendar moves them) are covered by recorded slots or ranges. See
 * docs/tasks/calendars.md.
 */
import type { SqlClient } from "../../../base/change.ts";
import { compileSchedule, type Schedule, type ScheduleSpec } from "../../../schedule/schedule.ts";
import { placesOf, type Ruled, slotsPutOff } from "../../../schedule/slot-rules.ts";
import { inZones, ownZones, type ZonesInForce } from "../../../schedule/zone-rules.ts";
import { runState } from "../states.ts";

/** The most times that are computed for the future part of one range. */
const rangeTimesMax = 10_000;

interface Range {
  fromMs: number;
  toMs: number;
  schedule: Schedule;
  outcome: number;
}

async function rangesOver(
  client: SqlClient,
  s: string,
  taskId: number,
  { fromMs, toMs, zones }: { fromMs: number; toMs: number; zones: ZonesInForce },
): Promise<Range[]> {
  const { rows } = await client.query(
    `select r.from_ms::float8 as "fromMs", r.to_ms::float8 as "toMs", r.outcome, v.definition->'schedule' as spec
     from ${s}.slot_range r join ${s}.task_version v using (task_id, version)
     where r.task_id = $1 and r.to_ms >= $2 and r.from_ms <= $3`,
    [taskId, Math.floor(fromMs), Math.ceil(toMs)],
  );
  return rows.map(({ fromMs, toMs, outcome, spec }) => ({
    fromMs: fromMs as number,
    toMs: toMs as number,
    outcome: outcome as number,
    schedule: compileSchedule(inZones({ schedule: spec as ScheduleSpec }, zones).schedule),
  }));
}

/** Returns the given nominal times that a row of the slot table or a range covers. */
export async function accountedOf(
  client: SqlClient,
  s: string,
  taskId: number,
  nominalMs: readonly number[],
  zones?: ZonesInForce,
): Promise<Set<number>> {
  return new Set((await outcomesOf(client, s, taskId, nominalMs, { zones })).keys());
}

/**
 * SQL condition: an edit at the time $3 leaves the row `l` of the slot table unchanged. Future runs that are neither claimed nor tried by
 * then are planned again, and so are future slots that were skipped.
 */
const staysSql = (s: string) => `(l.slot_ms <= $3 or exists (
  select from ${s}.run r where r.task_id = $1 and r.slot_ms = l.slot_ms and (r.state = ${runState.claimed} or r.attempt > 0))
  or (l.run_id is not null and not exists (select from ${s}.run r where r.task_id = $1 and r.slot_ms = l.slot_ms)))`;

/**
 * Returns the outcomes, as `slotOutcome`, of those nominal times that a recorded slot or range covers.
 * @param editedMs leaves out rows that an edit at this time would plan again; by default no row is left out
 * @param zones the zone rules by which the times of ranges are computed; by default this process's own
 */
export async function outcomesOf(
  client: SqlClient,
  s: string,
  taskId: number,
  nominalMs: readonly number[],
  {
    editedMs = Number.MAX_SAFE_INTEGER,
    zones = ownZones,
  }: { editedMs?: number | undefined; zones?: ZonesInForce | undefined } = {},
): Promise<Map<number, number>> {
  if (nominalMs.length === 0) return new Map();
  const { rows } = await client.query(
    `select l.slot_ms::float8 as "atMs", l.outcome from ${s}.slot l
     where l.task_id = $1 and l.slot_ms = any($2) and ${staysSql(s)}
       and not exists (select from ${s}.moved_slot m where m.task_id = $1 and m.slot_ms = l.slot_ms)
     union all
     select m.nominal_ms::float8, l.outcome from ${s}.moved_slot m join ${s}.slot l using (task_id, slot_ms)
     where m.task_id = $1 and m.nominal_ms = any($2) and ${staysSql(s)}`,
    [taskId, nominalMs, Math.round(editedMs)],
  );
  const accounted = new Map(rows.map(({ atMs, outcome }) => [atMs as number, outcome as number]));
  const span = {
    fromMs: nominalMs.reduce((a, b) => Math.min(a, b)),
    toMs: nominalMs.reduce((a, b) => Math.max(a, b)),
    zones,
  };
  for (const { fromMs, toMs, schedule, outcome } of await rangesOver(client, s, taskId, span))
    for (const atMs of nominalMs)
      if (!accounted.has(atMs) && fromMs <= atMs && atMs <= toMs && schedule.next(atMs - 1) === atMs)
        accounted.set(atMs, outcome);
  return accounted;
}

/**
 * Returns the nominal times whose slot lies in the future and that a recorded slot or range already covers. A time whose slot lies at the
 * same instant as the recorded slot is left out.
 * @param rangesCount false to ignore the future parts of ranges
 */
export async function accountedAhead(
  client: SqlClient,
  s: string,
  taskId: number,
  { ruled, nowMs, rangesCount }: { ruled: Ruled; nowMs: number; rangesCount: boolean },
): Promise<number[]> {
  const placeOf = placesOf(ruled);
  const { zones = ownZones } = ruled;
  const off = await accountedOf(client, s, taskId, slotsPutOff(ruled, nowMs), zones);
  const { rows } = await client.query(
    `select l.slot_ms::float8 as "atMs", l.slot_ms::float8 as "slotMs" from ${s}.slot l
     where l.task_id = $1 and l.slot_ms > $2
       and not exists (select from ${s}.moved_slot m where m.task_id = $1 and m.slot_ms = l.slot_ms)
     union all
     select m.nominal_ms::float8, m.slot_ms::float8 from ${s}.moved_slot m join ${s}.slot l using (task_id, slot_ms)
     where m.task_id = $1 and (m.nominal_ms > $2 or m.slot_ms > $2)`,
    [taskId, Math.round(nowMs)],
  );
  const accountedAt = new Map(rows.map(({ atMs, slotMs }) => [atMs as number, slotMs as number]));
  const ahead = new Set([...off, ...accountedAt.keys()]);
  const toMs = Number.MAX_SAFE_INTEGER;
  const ranges = rangesCount ? await rangesOver(client, s, taskId, { fromMs: nowMs, toMs, zones }) : [];
  for (const { fromMs, toMs, schedule } of ranges) {
    let atMs = schedule.next(Math.max(fromMs - 1, nowMs));
    for (let looks = 0; atMs !== null && atMs <= toMs && looks < rangeTimesMax; looks++) {
      ahead.add(atMs);
      atMs = schedule.next(atMs);
    }
  }
  const liesElsewhere = (atMs: number) => {
    const slotMs = placeOf(atMs);
    // If the recorded slot lies at the same instant, this time need not be listed: the slot's row prevents a second planning.
    return slotMs !== null && slotMs > nowMs && slotMs !== accountedAt.get(atMs);
  };
  return [...ahead].filter(liesElsewhere).sort((a, b) => a - b);
}

/**
 * Slots that are moved to the same instant become one slot. If a slot at this instant is already claimed, it is not planned again. This
 * function records that the slot also covers the nominal times that an edit moves to it.
 */
export async function joinClaimed(
  client: SqlClient,
  s: string,
  taskId: number,
  { schedule, zones }: { schedule: Schedule; zones: ZonesInForce | undefined },
  claimedMs: readonly number[],
): Promise<void> {
  const moves = claimedMs
    .filter((slotMs) => schedule.next(slotMs - 1) === slotMs)
    .flatMap((slotMs) => (schedule.nominalTimes?.(slotMs) ?? [slotMs]).map((nominalMs) => ({ nominalMs, slotMs })));
  const accounted = await accountedOf(
    client,
    s,
    taskId,
    moves.map(({ nominalMs }) => nominalMs),
    zones,
  );
  const joining = moves.filter(({ nominalMs }) => !accounted.has(nominalMs));
  if (joining.length === 0) return;
  await client.query(
    `with i as (select * from unnest($2::bigint[], $3::bigint[]) as i (nominal_ms, slot_ms)),
     own as (
       select distinct slot_ms as nominal_ms, slot_ms from i
       where not exists (select from ${s}.moved_slot m where m.task_id = $1 and m.slot_ms = i.slot_ms))
     insert into ${s}.moved_slot (task_id, nominal_ms, slot_ms)
     select $1, nominal_ms, slot_ms from (select * from i union select * from own) as joined
     on conflict (task_id, nominal_ms) do update set slot_ms = excluded.slot_ms`,
    [taskId, joining.map(({ nominalMs }) => nominalMs), joining.map(({ slotMs }) => slotMs)],
  );
}
