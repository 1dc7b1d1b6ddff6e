import type { SqlClient } from "../../../base/change.ts";
import { compileSchedule, type Schedule } from "../../../schedule/schedule.ts";
import { placesOf, plannedSchedule, type Ruled, slotsPassed, slotsPutBack } from "../../../schedule/slot-rules.ts";
import { type MissedRange, missedRanges, nominalRanges } from "../../../slots/plan.ts";
import type { Database } from "../database.ts";
import { rangeColumns, recordSlotsSql, slotKind } from "../events/recording.ts";
import { slotOutcome } from "../states.ts";
import { followMoved, movedBetween, nothingMoved } from "../zones/moved-times.ts";
import { accountedAhead, accountedOf, joinClaimed } from "./accounted.ts";
import { ensureLedger } from "./history.ts";
import { afterEndOf } from "./new-tasks.ts";
import type { Tasks } from "./read.ts";
import type { TaskRow } from "./task-rows.ts";

interface NewPlan {
  /** The task as it was before the change. */
  row: TaskRow;
  /** The definition, calendar and zone rules by which the task was planned. */
  was: Ruled;
  /** The definition and calendar by which the task is now planned, with the zone rules of `zonesVersion`. */
  is: Ruled;
  zonesVersion: number;
  paused: boolean;
  nowMs: number;
  /** Set to plan future times that are only part of a recorded range. By default a range covers its times, so they are not planned. */
  rangesAhead?: "planned";
}

/**
 * Sets the plan's next slot: the first slot after now that is not in the slot table; or an earlier slot, if its local time was
 * still in the future by the former zone rules; or null while the task is paused, waits for the end of a run from which it plans, or has
 * no slot left.
 */
export async function planAnew(
  { database, s }: Tasks,
  client: SqlClient,
  { row, was, is: ruled, zonesVersion, paused, nowMs, rangesAhead }: NewPlan,
): Promise<{ nextSlotMs: number | null; accountedMs: number[] | null }> {
  const { id: taskId, version: before } = row;
  const afterEnd = afterEndOf(ruled.definition);
  const { rows } = await client.query(
    `select array(select slot_ms::float8 from ${s}.slot where task_id = $1 and slot_ms > $2) as accepted,
            exists (select from ${s}.run where task_id = $1 and after_end) as running`,
    [taskId, Math.round(nowMs)],
  );
  const accepted = new Set(rows[0]?.accepted as number[]);
  const waits = paused || (afterEnd !== null && rows[0]?.running === true);
  // The slots of a fixed delay depend on the ends of its runs, so a change of zone rules cannot move them.
  const asked = { ruled, nowMs, rangesCount: rangesAhead === undefined };
  const isPlanned = before > 0 && afterEnd === null;
  const moved = isPlanned ? await followMoved(client, s, taskId, { was, is: ruled, nowMs }) : nothingMoved;
  const skipped = { row, ruled, outcome: "skipped", now: Math.round(nowMs) } as const;
  await accountNominal(client, s, { ...skipped, nominalMs: moved.passedMs, reason: passedReason });
  if (paused) await accountNominal(client, s, { ...skipped, nominalMs: moved.lateMs, reason: pausedReason });
  const ahead = isPlanned ? await accountedAhead(client, s, taskId, asked) : [];
  const accounted = [...new Set([...ahead, ...moved.accountedMs])].sort((a, b) => a - b);
  const accountedMs = accounted.length > 0 ? accounted : null;
  const schedule = plannedSchedule(ruled.definition, ruled.calendar, accounted);
  await joinClaimed(client, s, taskId, { schedule, zones: ruled.zones }, [...accepted]);
  // This is done only for a task that existed before, because slots that came due before a task existed do not belong to the task.
  if (before > 0 && !paused) await skipPassed(database, client, taskId, { ruled, lateMs: moved.lateMs, nowMs });
  let next = waits ? null : schedule.next(moved.fromMs ?? nowMs);
  // The loop checks each slot instead of starting after the last accepted one: a slot that was withdrawn just now may be earlier than a
  // slot that a worker has claimed ahead of its time.
  while (next !== null && accepted.has(next)) next = schedule.next(next);
  await client.query(
    `update ${s}.plan set next_slot_ms = $2, after_end_ms = $3, paused = $4, zones_version = $5,
            at_end = (select definition ? 'atEnd' from ${s}.task where id = $1)
     where task_id = $1`,
    [taskId, next === null ? null : Math.round(next), afterEnd, paused, zonesVersion],
  );
  if (accountedMs !== null || row.accounted_ms !== null)
    await client.query(`update ${s}.task set accounted_ms = $2 where id = $1`, [taskId, accountedMs]);
  return { nextSlotMs: next, accountedMs };
}

/**
 * Records slots as skipped that an edit moves to a time before now, because the planner does not plan past slots. The records are at the
 * slots' nominal times, which are still in the future.
 * @param lateMs nominal times of slots that are planned although they are late
 */
async function skipPassed(
  database: Database,
  client: SqlClient,
  taskId: number,
  { ruled, lateMs, nowMs }: { ruled: Ruled; lateMs: readonly number[]; nowMs: number },
): Promise<void> {
  const s = database.schema;
  const passed = slotsPassed(ruled, nowMs).filter((atMs) => !lateMs.includes(atMs));
  const accounted = await accountedOf(client, s, taskId, passed, ruled.zones);
  const slotsMs = passed.filter((atMs) => !accounted.has(atMs));
  if (slotsMs.length === 0) return;
  await ensureLedger(database, slotsMs, nowMs);
  await client.query(
    `with skipped as (
       insert into ${s}.slot (task_id, slot_ms, outcome, reason, accepted_ms)
       select $1, slot_ms, ${slotOutcome.skipped}, $4, $3 from unnest($2::bigint[]) as i (slot_ms)
       on conflict do nothing returning task_id, slot_ms, outcome, reason),
     ${recordSlotsSql(s, "recorded", "skipped e", {
       kind: `${slotKind.skipped}`,
       task: "e.task_id",
       slot: "e.slot_ms",
       why: "e.reason",
       now: "$3::bigint",
     })}
     insert into ${s}.tally_delta (task_id, skipped) select $1, count(*) from skipped having count(*) > 0`,
    [taskId, slotsMs, Math.round(nowMs), passedReason],
  );
}

/**
 * Records slots as missed that came due under the old definition and were not planned yet.
 * @param ruled the old definition and its rules
 */
export async function accountMissed(
  { s }: Tasks,
  client: SqlClient,
  { row, ruled, now, reason }: { row: TaskRow; ruled: Ruled; now: number; reason: string },
): Promise<void> {
  const first = row.next_slot_ms === null ? null : Number(row.next_slot_ms);
  if (first === null || first > now) return;
  const schedule = plannedSchedule(ruled.definition, ruled.calendar, row.accounted_ms ?? []);
  const last = schedule.previous(now + 1) ?? first;
  if (schedule.nominalTimes) {
    await accountNominal(client, s, {
      row,
      ruled,
      outcome: "missed",
      nominalMs: timesIn(schedule, first, last),
      reason,
      now,
    });
    return;
  }
  await writeRanges(client, s, { row, outcome: "missed", ranges: missedRanges(schedule, first, last, reason), now });
}

/** Returns the nominal times of the newest `slotsMax` slots in [fromMs, toMs], from the newest slot to the oldest. */
function timesIn(schedule: Schedule, fromMs: number, toMs: number): number[] {
  const times: number[] = [];
  let slot = schedule.previous(toMs + 1);
  for (let looks = 0; slot !== null && slot >= fromMs && looks < slotsMax; looks++) {
    times.push(...(schedule.nominalTimes?.(slot) ?? [slot]));
    slot = schedule.previous(slot);
  }
  return times;
}

const slotsMax = 10_000;
const pausedReason = "task paused";
const passedReason = "calendar: moved to a time that had passed";

interface Account {
  row: TaskRow;
  ruled: Ruled;
  outcome: "missed" | "skipped";
  nominalMs: readonly number[];
  reason: string;
  now: number;
}

/** Records an outcome for each of these nominal times that no recorded slot or range covers yet. */
async function accountNominal(
  client: SqlClient,
  s: string,
  { row, ruled, outcome, nominalMs, reason, now }: Account,
): Promise<void> {
  const wanted = [...new Set(nominalMs)];
  const accounted = await accountedOf(client, s, row.id, wanted, ruled.zones);
  const open = wanted.filter((atMs) => !accounted.has(atMs));
  if (open.length === 0) return;
  const ranges = nominalRanges(ruled.definition.schedule, open, reason);
  await writeRanges(client, s, { row, outcome, ranges, now });
}

/**
 * Records slots as missed that the former calendar had postponed to a later day and the new one does not, if their own time has
 * passed. Each is recorded at its own time. Slots that ran at their own time before they were postponed, or that are claimed at
 * their later time, are already recorded. Times before the task's first version are left out.
 */
export async function accountPutBack(
  { s }: Tasks,
  client: SqlClient,
  { row, before, after, now }: { row: TaskRow; before: Ruled; after: Ruled; now: number },
): Promise<void> {
  const moved = new Map(movedBetween(before, after, now).map(({ wasMs, isMs }) => [wasMs, isMs]));
  const back = slotsPutBack(before, after, now, moved);
  if (back.length === 0) return;
  const { rows } = await client.query(
    `select min(changed_ms)::float8 as "firstMs" from ${s}.task_version where task_id = $1`,
    [row.id],
  );
  const nominalMs = back.filter((atMs) => atMs > (rows[0]?.firstMs as number));
  const reason = "put off to a later day, until an edit";
  await accountNominal(client, s, { row, ruled: before, outcome: "missed", nominalMs, reason, now });
}

/**
 * Records slots as skipped that came due while the task was paused. Called at a resume, at a removal, at a change of the pause's
 * end, and, for slots of the former schedule, at an edit. Slots that are already in the slot table were planned before the pause
 * and are left out.
 */
export async function accountPaused(
  { s }: Tasks,
  client: SqlClient,
  { row, ruled, now }: { row: TaskRow; ruled: Ruled; now: number },
): Promise<void> {
  // A task with a fixed delay gets a slot only when a run ends, so it has none during a pause.
  if (row.paused_ms === null || row.deleted_ms !== null || afterEndOf(row.definition) !== null) return;
  // The time of the pause, or of the last change since then: an edit, or a new end of the pause. Slots before it are recorded
  // already.
  const sinceMs = Number(row.changed_ms);
  const schedule = plannedSchedule(ruled.definition, ruled.calendar, row.accounted_ms ?? []);
  if (schedule.nominalTimes) {
    const nominalMs = [...timesIn(schedule, sinceMs + 1, now), ...timesMovedBefore(ruled, sinceMs, now)];
    await accountNominal(client, s, { row, ruled, outcome: "skipped", nominalMs, reason: pausedReason, now });
    return;
  }
  const { rows } = await client.query(
    `select slot_ms::float8 as "slotMs" from ${s}.slot where task_id = $1 and slot_ms > $2 and slot_ms <= $3 order by slot_ms`,
    [row.id, sinceMs, now],
  );
  const skipped: MissedRange[] = [];
  let afterMs = sinceMs;
  for (const beforeMs of [...rows.map(({ slotMs }) => slotMs as number), now + 1]) {
    const first = schedule.next(afterMs);
    if (first === null) break;
    if (first < beforeMs)
      skipped.push(...missedRanges(schedule, first, schedule.previous(beforeMs) ?? first, pausedReason));
    afterMs = beforeMs;
  }
  if (skipped.length > 0) await writeRanges(client, s, { row, outcome: "skipped", ranges: skipped, now });
}

/**
 * Returns those of the newest `slotsMax` nominal times in (sinceMs, toMs] whose slots the calendar moved to `sinceMs` or earlier, so that
 * the slots were not planned.
 */
function timesMovedBefore(ruled: Ruled, sinceMs: number, toMs: number): number[] {
  const plain = compileSchedule(ruled.definition.schedule);
  const placeOf = placesOf(ruled);
  return timesIn(plain, sinceMs + 1, toMs).filter((atMs) => (placeOf(atMs) ?? atMs) <= sinceMs);
}

async function writeRanges(
  client: SqlClient,
  s: string,
  { row, outcome, ranges, now }: { row: TaskRow; outcome: "missed" | "skipped"; ranges: MissedRange[]; now: number },
): Promise<void> {
  await client.query(
    `with told as (
       insert into ${s}.slot_range (task_id, version, from_ms, to_ms, slots, outcome, reason, recorded_ms)
       select $1, $2, i.from_ms, i.to_ms, i.slots, ${slotOutcome[outcome]}, i.reason, $7
       from unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::text[]) as i (from_ms, to_ms, slots, reason)
       returning task_id, slots, from_ms, to_ms, outcome, reason),
     ${recordSlotsSql(s, "recorded", "told e", rangeColumns("$7::bigint"))}
     insert into ${s}.tally_delta (task_id, ${outcome}) select $1, sum(slots) from told where slots is not null having count(*) > 0`,
    [
      row.id,
      row.version,
      ranges.map(({ fromMs }) => fromMs),
      ranges.map(({ toMs }) => toMs),
      ranges.map(({ count }) => count),
      ranges.map(({ reason }) => reason),
      now,
    ],
  );
}
