/** Handles a task's slots when its zone gets other rules than those by which the task was planned: see docs/tasks/time-zones.md. */
import type { SqlClient } from "../../../base/change.ts";
import { sortedJson } from "../../../base/json.ts";
import { type ScheduleSpec, zoneNameOf } from "../../../schedule/schedule.ts";
import { placesOf, plannedSchedule, type Ruled, slotsPassed } from "../../../schedule/slot-rules.ts";
import { zoneOf } from "../../../schedule/zone.ts";
import { type MovedTime, movedTimes } from "../../../schedule/zone-rules.ts";
import { accountedOf } from "../tasks/accounted.ts";

export interface Followed {
  /** Nominal times of slots between `fromMs` and now that must not be planned: they are recorded already, or need no record. */
  accountedMs: number[];
  /** Nominal times whose slots are before now by the new rules, but were still in the future by the former ones. */
  lateMs: number[];
  /** The time after which planning begins; undefined if there are no such times. */
  fromMs: number | undefined;
  /** Nominal times before now that were still in the future by the former rules, but that a calendar moved to an earlier time. */
  passedMs: number[];
}

/** The longest time by which a calendar can postpone a slot, in ms. */
const backMs = 400 * 86_400_000;
export const nothingMoved: Followed = { accountedMs: [], lateMs: [], fromMs: undefined, passedMs: [] };

/** The most slots that are checked between the first slot that is late by the new rules and now. */
const slotsMax = 10_000;

/**
 * Moves the records of slots whose local time has another instant by the new zone rules to that instant, so that the slots do not run
 * again. A local time that was still in the future and is now past is planned late. The caller has already withdrawn the runs that are
 * planned and not claimed.
 */
export async function followMoved(
  client: SqlClient,
  s: string,
  taskId: number,
  { was, is, nowMs }: { was: Ruled; is: Ruled; nowMs: number },
): Promise<Followed> {
  const toMs = slotsPassed(is, nowMs).reduce((a, b) => Math.max(a, b), await putForwardMost(client, s, taskId, nowMs));
  const moved = movedBetween(was, is, nowMs, toMs);
  if (moved.length === 0) return nothingMoved;
  const accounted = await accountedOf(
    client,
    s,
    taskId,
    moved.map(({ wasMs }) => wasMs),
    was.zones,
  );
  const kept = moved.filter(({ wasMs }) => accounted.has(wasMs));
  await handOn(client, s, taskId, kept);
  const [placeBefore, placeAfter] = [placesOf(was), placesOf(is)];
  const placed = ({ isMs }: MovedTime) => placeAfter(isMs) ?? isMs;
  const open = moved.filter((time) => !accounted.has(time.wasMs) && placed(time) <= nowMs);
  const late = open.filter(({ wasMs }) => (placeBefore(wasMs) ?? nowMs) > nowMs);
  const passedMs = open
    .filter((time) => time.wasMs > nowMs && time.isMs <= nowMs && !late.includes(time))
    .map(({ isMs }) => isMs);
  if (late.length === 0) return { ...nothingMoved, passedMs };
  const fromMs = Math.min(...late.map(placed)) - 1;
  const lateMs = late.map(({ isMs }) => isMs);
  return { accountedMs: othersIn(is, fromMs, nowMs, lateMs), lateMs, fromMs, passedMs };
}

/**
 * Returns the local times that have different instants by the former and the new zone rules, from 400 days back to a day ahead; none if the
 * schedule itself differs. The range goes back so far because a later edit may need the record of a slot that a calendar postponed by up to
 * that long.
 * @param toMs extends the range up to this time
 */
export function movedBetween(was: Ruled, is: Ruled, nowMs: number, toMs = nowMs): MovedTime[] {
  const [before, after] = [was.definition.schedule, is.definition.schedule];
  if (zoneNameOf(before) === zoneNameOf(after) || plain(before) !== plain(after)) return [];
  return movedTimes(before, after, { fromMs: nowMs - backMs, toMs });
}

/**
 * Returns the latest recorded time after `nowMs`; `nowMs` if there is none. Such times are nominal: the schedule gives them, but a
 * calendar has moved their slots to earlier instants, so the slots are recorded before their nominal times have come.
 */
async function putForwardMost(client: SqlClient, s: string, taskId: number, nowMs: number): Promise<number> {
  const { rows } = await client.query(
    `select greatest(
       (select max(nominal_ms) from ${s}.moved_slot where task_id = $1 and nominal_ms > $2),
       (select max(to_ms) from ${s}.slot_range where task_id = $1 and to_ms > $2))::float8 as last`,
    [taskId, Math.round(nowMs)],
  );
  return (rows[0]?.last as number | null) ?? nowMs;
}

/** Returns a schedule's text without the rules of its zone and without its jitter. */
const plain = (spec: ScheduleSpec): string => {
  const zone = zoneNameOf(spec);
  return sortedJson({
    ...spec,
    ...(zone === null ? {} : { zone: zoneOf(zone).name }),
    jitterMs: null,
    jitterBy: null,
  } as never);
};

/** Returns the nominal times of the slots in (fromMs, nowMs] that are not in `lateMs`. */
function othersIn(ruled: Ruled, fromMs: number, nowMs: number, lateMs: readonly number[]): number[] {
  const planned = new Set(lateMs);
  const schedule = plannedSchedule(ruled.definition, ruled.calendar);
  const others: number[] = [];
  let slotMs = schedule.next(fromMs);
  for (let looks = 0; slotMs !== null && slotMs <= nowMs && looks < slotsMax; looks++) {
    others.push(...(schedule.nominalTimes?.(slotMs) ?? [slotMs]).filter((atMs) => !planned.has(atMs)));
    slotMs = schedule.next(slotMs);
  }
  return others;
}

/**
 * Makes the records at the former instants cover the new instants: a row of `moved_slot` links each new instant to the recorded
 * slot, and the ends of ranges are changed.
 */
async function handOn(client: SqlClient, s: string, taskId: number, moved: readonly MovedTime[]): Promise<void> {
  if (moved.length === 0) return;
  const values = [taskId, moved.map(({ wasMs }) => wasMs), moved.map(({ isMs }) => isMs)];
  await client.query(
    `with times as (select * from unnest($2::bigint[], $3::bigint[]) as i (was_ms, is_ms)),
     rows as (
       select i.was_ms, i.is_ms, m.slot_ms from times i join ${s}.moved_slot m on m.task_id = $1 and m.nominal_ms = i.was_ms
       union all
       select i.was_ms, i.is_ms, l.slot_ms from times i join ${s}.slot l on l.task_id = $1 and l.slot_ms = i.was_ms
       where not exists (select from ${s}.moved_slot m where m.task_id = $1 and m.slot_ms = l.slot_ms)),
     gone as (delete from ${s}.moved_slot m using rows where m.task_id = $1 and m.nominal_ms = rows.was_ms)
     insert into ${s}.moved_slot (task_id, nominal_ms, slot_ms) select $1, is_ms, slot_ms from rows
     on conflict (task_id, nominal_ms) do nothing`,
    values,
  );
  for (const end of ["from_ms", "to_ms"])
    await client.query(
      `with times as (select * from unnest($2::bigint[], $3::bigint[]) as i (was_ms, is_ms))
       update ${s}.slot_range r set ${end} = i.is_ms from times i where r.task_id = $1 and r.${end} = i.was_ms`,
      values,
    );
}
