import type { SqlClient } from "../../../base/change.ts";
import type { Calendar } from "../../../schedule/calendar.ts";
import { compileSchedule } from "../../../schedule/schedule.ts";
import { plannedSchedule, type Ruled, slotsPassed, slotsPutBack } from "../../../schedule/slot-rules.ts";
import { type MissedRange, missedRanges } from "../../../slots/plan.ts";
import type { TaskDefinition } from "../../../task/task.ts";
import { skipPassed } from "../claims/withdraw.ts";
import { slotOutcome } from "../states.ts";
import { afterEndOf } from "./new-tasks.ts";
import type { Tasks } from "./read.ts";
import type { TaskRow } from "./task-rows.ts";

interface NewPlan {
  /** The task as it was before the change. */
  row: TaskRow;
  definition: TaskDefinition;
  calendar: Calendar | undefined;
  paused: boolean;
  nowMs: number;
}

/** Sets the plan's next slot: the first after now that the ledger does not have. */
export async function planAnew(
  client: SqlClient,
  s: string,
  { row: { id: taskId, version: before }, definition, calendar, paused, nowMs }: NewPlan,
): Promise<number | null> {
  const afterEnd = afterEndOf(definition);
  const { rows } = await client.query(
    `select array(select slot_ms::float8 from ${s}.slot where task_id = $1 and slot_ms > $2) as accepted,
            exists (select from ${s}.run where task_id = $1 and after_end) as running`,
    [taskId, Math.round(nowMs)],
  );
  const accepted = new Set(rows[0]?.accepted as number[]);
  const waits = paused || (afterEnd !== null && rows[0]?.running === true);
  const compiled = plannedSchedule(definition, calendar);
  // Only of a task that was there: a slot that came due before there was one is nobody's.
  if (before > 0 && !paused) await skipPassed(client, s, taskId, slotsPassed({ definition, calendar }, nowMs), nowMs);
  let next = waits ? null : compiled.next(nowMs);
  // Not simply after the last: a slot withdrawn just now may come before one that a worker has claimed ahead.
  while (next !== null && accepted.has(next)) next = compiled.next(next);
  await client.query(`update ${s}.plan set next_slot_ms = $2, after_end_ms = $3, paused = $4 where task_id = $1`, [
    taskId,
    next === null ? null : Math.round(next),
    afterEnd,
    paused,
  ]);
  return next;
}

/** Slots that came due under the old definition and were not planned yet are not forgotten. @param calendar as it was then */
export async function accountMissed(
  { s }: Tasks,
  client: SqlClient,
  { row, calendar, now, reason }: { row: TaskRow; calendar: Calendar | undefined; now: number; reason: string },
): Promise<void> {
  const first = row.next_slot_ms === null ? null : Number(row.next_slot_ms);
  if (first === null || first > now) return;
  const schedule = plannedSchedule(row.definition, calendar);
  const last = schedule.previous(now + 1) ?? first;
  await writeRanges(client, s, { row, outcome: "missed", ranges: missedRanges(schedule, first, last, reason), now });
}

/**
 * Slots that had been put off to a later day, and whose own time has passed now that they are not any more, are told as missed, each at its
 * own time. What has run there before it was put off, or is claimed at its later time, has its account; what lies before the task's first
 * version is nobody's.
 */
export async function accountPutBack(
  { s }: Tasks,
  client: SqlClient,
  { row, before, after, now }: { row: TaskRow; before: Ruled; after: Ruled; now: number },
): Promise<void> {
  const found = slotsPutBack(before, after, now);
  if (found.length === 0) return;
  const { rows } = await client.query(
    `select nominal_ms::float8 as "nominalMs" from unnest($2::bigint[], $3::bigint[]) as i (nominal_ms, slot_ms)
     where nominal_ms > (select min(changed_ms) from ${s}.task_version where task_id = $1)
       and not exists (select from ${s}.slot l where l.task_id = $1 and l.slot_ms in (i.nominal_ms, i.slot_ms))
       and not exists (select from ${s}.slot_range r where r.task_id = $1 and r.from_ms <= i.nominal_ms and r.to_ms >= i.nominal_ms)
     order by 1`,
    [row.id, found.map(({ nominalMs }) => nominalMs), found.map(({ slotMs }) => slotMs)],
  );
  const own = compileSchedule(before.definition.schedule);
  const ranges: MissedRange[] = [];
  for (const { nominalMs } of rows as unknown as { nominalMs: number }[]) {
    const last = ranges.at(-1);
    if (last && own.next(last.toMs) === nominalMs) {
      last.toMs = nominalMs;
      last.count = (last.count ?? 0) + 1;
    } else
      ranges.push({ fromMs: nominalMs, toMs: nominalMs, count: 1, reason: "put off to a later day, until an edit" });
  }
  if (ranges.length > 0) await writeRanges(client, s, { row, outcome: "missed", ranges, now });
}

/**
 * Slots that came due while the task was paused are told as skipped: by the resume, by a removal, and by an edit for those of the
 * schedule before it. Those that the ledger has already were planned before the pause.
 */
export async function accountPaused(
  { s }: Tasks,
  client: SqlClient,
  { row, calendar, now }: { row: TaskRow; calendar: Calendar | undefined; now: number },
): Promise<void> {
  // A fixed delay has no slots while no run ends.
  if (row.paused_ms === null || row.deleted_ms !== null || afterEndOf(row.definition) !== null) return;
  // The pause or the last edit in it: nothing else changes a paused task.
  const sinceMs = Number(row.changed_ms);
  const { rows } = await client.query(
    `select slot_ms::float8 as "slotMs" from ${s}.slot where task_id = $1 and slot_ms > $2 and slot_ms <= $3 order by slot_ms`,
    [row.id, sinceMs, now],
  );
  const schedule = plannedSchedule(row.definition, calendar);
  const skipped: MissedRange[] = [];
  let afterMs = sinceMs;
  for (const beforeMs of [...rows.map(({ slotMs }) => slotMs as number), now + 1]) {
    const first = schedule.next(afterMs);
    if (first === null) break;
    if (first < beforeMs)
      skipped.push(...missedRanges(schedule, first, schedule.previous(beforeMs) ?? first, "task paused"));
    afterMs = beforeMs;
  }
  if (skipped.length > 0) await writeRanges(client, s, { row, outcome: "skipped", ranges: skipped, now });
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
       returning slots)
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
