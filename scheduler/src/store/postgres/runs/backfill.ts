import type { SqlClient } from "../../../base/change.ts";
import { pause } from "../../../base/clock.ts";
import { CarillonError } from "../../../base/errors.ts";
import { limits } from "../../../base/limits.ts";
import type { BackfillRange, OperationRequest } from "../../../run/operations.ts";
import type { Schedule } from "../../../schedule/schedule.ts";
import { plannedSchedule } from "../../../schedule/slot-rules.ts";
import type { TaskRecord } from "../../../task/task-record.ts";
import { settleGates } from "../claims/gates.ts";
import { backfillReason } from "../claims/withdraw.ts";
import { recordSlotsSql, slotKind } from "../events/recording.ts";
import { slotOutcome } from "../states.ts";
import { outcomesOf } from "../tasks/accounted.ts";
import { ensureLedger } from "../tasks/history.ts";
import type { OpenOperation, OperationContext, Progress } from "./operation-rows.ts";

const slotsPerStep = 200;
/**
 * At a given rate, one step creates at most the runs of this span of time, in ms. The span is short, so that a stopped backfill leaves few
 * planned runs.
 */
const aheadMs = 2_000;

export async function previewBackfill(
  { database, tasks }: OperationContext,
  { filter, range }: OperationRequest,
  nowMs: number,
  show: number,
) {
  const task = await tasks.byName(filter.task as string);
  const schedule = scheduleOf(task);
  const { fromMs, toMs, reverse } = clamped(range as BackfillRange, nowMs);
  let total = 0;
  let looks = 0;
  const first: string[] = [];
  for (const { slotMs, fires } of slotsIn(schedule, fromMs, toMs, reverse)) {
    // Slots that a calendar excludes count too: a calendar may exclude every slot, and the loop would otherwise not be limited.
    looks += 1;
    if (looks > limits.backfillSlots) {
      throw new CarillonError("OPTION_INVALID", `backfill: the range has more than ${limits.backfillSlots} slots`, {
        hint: "Take it in parts.",
      });
    }
    // This process computes the slots. Without pauses, a large range would block the event loop for too long.
    if (looks % limits.backfillSlotsAtOnce === 0) await pause(database.clock, 0);
    if (!fires) continue;
    if (total < show) first.push(`${task.name} at ${new Date(slotMs).toISOString()}`);
    total += 1;
  }
  return { total, first };
}

export async function stepBackfill(
  { database, s, tasks, runs }: OperationContext,
  client: SqlClient,
  open: OpenOperation,
  now: number,
): Promise<Progress> {
  const range = clamped(open.range as BackfillRange, open.created_ms);
  const task = await tasks.byName(open.filter.task as string);
  const { reverse, perSecond, missed } = range;
  // Continues after the last slot of the previous step, in the direction of the backfill.
  const { at } = open.cursor;
  const fromMs = reverse || at === undefined ? range.fromMs : at + 1;
  const toMs = reverse && at !== undefined ? at - 1 : range.toMs;
  const paceMs = Math.max(now, open.cursor.paceMs ?? now);
  const most =
    perSecond === null ? slotsPerStep : Math.max(1, Math.min(slotsPerStep, Math.ceil((perSecond * aheadMs) / 1_000)));
  const slots: number[] = [];
  let looks = 0;
  let last: number | undefined;
  const schedule = scheduleOf(task);
  for (const { slotMs, fires } of slotsIn(schedule, fromMs, toMs, reverse)) {
    last = slotMs;
    if (fires) slots.push(slotMs);
    if (slots.length === most || ++looks === limits.backfillSlotsAtOnce) break;
  }
  const nothing = { done: 0, passed: 0, failed: 0, error: null, nextMs: now };
  if (last === undefined) return { ...nothing, cursor: open.cursor, left: false };
  if (slots.length === 0) return { ...nothing, cursor: { ...open.cursor, at: last }, left: true };
  const lacked = await lacking(client, s, task, { slots, missed, schedule });
  const wanted = [...lacked.keys()];
  await ensureLedger(database, wanted, now);
  const taken = await enterLedger(client, s, { taskId: task.taskId, slots: wanted, missed, operationId: open.id, now });
  const payload = task.definition.slotPayload === null ? null : JSON.stringify(task.definition.slotPayload);
  const made: { slotMs: number; runId: number }[] = [];
  for (const slotMs of slots.filter((one) => taken.has(one))) {
    const dueMs = perSecond === null ? now : paceMs + (made.length * 1_000) / perSecond;
    const write = { taskId: task.taskId, payload, dueMs, key: null, priority: null, source: "slot" as const };
    made.push({ slotMs, runId: (await runs.enqueueIn(client, write, now, "later")).runId });
  }
  await link(client, s, task, made, now);
  await noteMoved(client, s, task, made, lacked);
  // Slots of concurrency are given out only here, after the slots are written: a run that is skipped now is then recorded in its slot's
  // row.
  if (made.length > 0) await settleGates(client, s, [task.taskId], now, false);
  const nextPaceMs = perSecond === null ? now : Math.round(paceMs + (made.length * 1_000) / perSecond);
  return {
    done: made.length,
    passed: slots.length - made.length,
    failed: 0,
    error: null,
    cursor: { at: last, paceMs: nextPaceMs },
    left: true,
    nextMs: Math.max(now, nextPaceMs - aheadMs / 2),
  };
}

/** Returns the nominal times of the task's own schedule that a slot represents. */
const nominalOf = (schedule: Schedule, slotMs: number): readonly number[] =>
  schedule.nominalTimes?.(slotMs) ?? [slotMs];

/**
 * Selects the slots that neither the slot table nor a range records, and that come before the task's next planned slot. With `missed`,
 * slots that are recorded as skipped or missed are selected too. A slot is left out if all its nominal times are covered by other slots,
 * because it ran before an edit moved it.
 * @returns each slot with those of its nominal times that no other slot covers
 */
async function lacking(
  client: SqlClient,
  s: string,
  task: TaskRecord,
  { slots, missed, schedule }: { slots: number[]; missed: boolean; schedule: Schedule },
): Promise<Map<number, number[]>> {
  const [least, most] = [Math.min(...slots), Math.max(...slots)];
  const { rows } = await client.query(
    `select array(select slot_ms::float8 from ${s}.slot where task_id = $1 and slot_ms between $2 and $3
                  and (outcome = ${slotOutcome.run} or not $4)) as told,
            (select next_slot_ms::float8 from ${s}.plan where task_id = $1) as next,
            (select coalesce(json_agg(json_build_array(from_ms, to_ms)), '[]') from ${s}.slot_range
             where task_id = $1 and to_ms >= $2 and from_ms <= $3 and not $4) as ranges`,
    [task.taskId, least, most, missed],
  );
  const { told, next, ranges } = rows[0] as { told: number[]; next: number | null; ranges: [number, number][] };
  const known = new Set(told);
  const given = (slotMs: number) => ranges.some(([from, to]) => slotMs >= from && slotMs <= to);
  const nominalMs = slots.flatMap((slotMs) => nominalOf(schedule, slotMs));
  const outcomes = await outcomesOf(client, s, task.taskId, nominalMs, { zones: task.zones });
  const isOpen = (atMs: number) => {
    const outcome = outcomes.get(atMs);
    return outcome === undefined || (missed && outcome !== slotOutcome.run);
  };
  // If a calendar moves the task's slots, the recorded ranges consist of nominal times, so they cannot be compared with slots.
  const isFree = (slotMs: number) =>
    !known.has(slotMs) && (schedule.nominalTimes !== undefined || !given(slotMs)) && (next === null || slotMs < next);
  const lacked = slots.filter(isFree).map((slotMs) => [slotMs, nominalOf(schedule, slotMs).filter(isOpen)] as const);
  return new Map(lacked.filter(([, open]) => open.length > 0).map(([slotMs, open]) => [slotMs, open]));
}

/** Records the nominal times of slots that were moved, so that a later edit finds that these times are covered. */
async function noteMoved(
  client: SqlClient,
  s: string,
  { taskId }: TaskRecord,
  made: { slotMs: number }[],
  lacked: ReadonlyMap<number, readonly number[]>,
): Promise<void> {
  const moves = made.flatMap(({ slotMs }) => {
    const nominalMs = lacked.get(slotMs) ?? [];
    return nominalMs.length === 1 && nominalMs[0] === slotMs ? [] : nominalMs.map((atMs) => ({ atMs, slotMs }));
  });
  if (moves.length === 0) return;
  await client.query(
    `insert into ${s}.moved_slot (task_id, nominal_ms, slot_ms)
     select $1, i.* from unnest($2::bigint[], $3::bigint[]) as i (nominal_ms, slot_ms)
     on conflict (task_id, nominal_ms) do update set slot_ms = excluded.slot_ms`,
    [taskId, moves.map(({ atMs }) => atMs), moves.map(({ slotMs }) => slotMs)],
  );
}

interface LedgerEntry {
  taskId: number;
  slots: number[];
  missed: boolean;
  operationId: number;
  now: number;
}

/** Writes the rows of the slot table. @returns the slots that this backfill must run */
async function enterLedger(
  client: SqlClient,
  s: string,
  { taskId, slots, missed, operationId, now }: LedgerEntry,
): Promise<Set<number>> {
  if (slots.length === 0) return new Set();
  const { rows } = await client.query(
    `with given as (
       select * from unnest($2::bigint[]) as i (slot_ms)
     ), before as materialized (
       select l.slot_ms, l.run_id, case l.outcome when ${slotOutcome.missed} then ': was missed, ' else ': was skipped, ' end as was
       from ${s}.slot l join given using (slot_ms)
       where l.task_id = $1 and l.outcome <> ${slotOutcome.run} and $5 order by l.slot_ms for update of l
     ), turned as (
       update ${s}.slot l set outcome = ${slotOutcome.run}, run_id = null, reason = $3 || coalesce(before.was || l.reason, ''), accepted_ms = $4
       from before where l.task_id = $1 and l.slot_ms = before.slot_ms and l.outcome <> ${slotOutcome.run} returning l.slot_ms
     ), counted as (
       insert into ${s}.tally_delta (task_id, skipped)
       select $1, -count(*) from before where run_id is null having count(*) > 0
     ), entered as (
       insert into ${s}.slot (task_id, slot_ms, outcome, reason, accepted_ms)
       select $1, slot_ms, ${slotOutcome.run}, $3, $4 from given where slot_ms not in (select slot_ms from before)
       on conflict do nothing returning slot_ms
     )
     select slot_ms from turned union all select slot_ms from entered`,
    [taskId, slots, `${backfillReason}${operationId}`, now, missed],
  );
  return new Set(rows.map((row) => Number(row.slot_ms)));
}

/** Writes which run each slot has, and records the events of the slots. */
async function link(
  client: SqlClient,
  s: string,
  { taskId }: TaskRecord,
  made: { slotMs: number; runId: number }[],
  now: number,
) {
  if (made.length === 0) return;
  await client.query(
    `with i as (select * from unnest($2::bigint[], $3::bigint[]) as i (run_id, slot_ms)),
          runs as (update ${s}.run r set slot_ms = i.slot_ms from i where r.id = i.run_id),
          linked as (
            update ${s}.slot l set run_id = i.run_id from i where l.task_id = $1 and l.slot_ms = i.slot_ms
            returning l.task_id, l.slot_ms, l.run_id, l.reason
          ), ${recordSlotsSql(s, "recorded", "linked e", {
            kind: `${slotKind.caughtUp}`,
            task: "e.task_id",
            slot: "e.slot_ms",
            run: "e.run_id",
            why: "e.reason",
            now: "$4::bigint",
          })}
     select count(*) from linked`,
    [taskId, made.map(({ runId }) => runId), made.map(({ slotMs }) => slotMs), now],
  );
}

/** Returns the task's compiled schedule. @throws OPTION_INVALID if its slots cannot be computed in advance */
function scheduleOf({ name, definition, calendar, zones }: TaskRecord): Schedule {
  const { schedule } = definition;
  if (schedule.type === "manual" || (schedule.type === "every" && schedule.mode === "delay")) {
    throw new CarillonError("OPTION_INVALID", `backfill: task ${name} has no slots that can be told beforehand`, {
      hint: "A schedule that is manual, and a fixed delay, have no slots in the past.",
    });
  }
  // A blackout prevents starts at certain times, and these runs start now, so slots in past blackouts are not excluded. The slot table
  // shows which slots blackouts excluded.
  const ruled = { schedule, ...(definition.calendar ? { calendar: definition.calendar } : {}) };
  return plannedSchedule(ruled, calendar, [], zones);
}

/** Limits the range to the past, because future slots need no backfill. */
const clamped = (range: BackfillRange, nowMs: number): BackfillRange => ({
  ...range,
  toMs: Math.min(range.toMs, Math.floor(nowMs)),
});

/** Yields the slots in [fromMs, toMs], each with whether its calendar allows it. */
function* slotsIn(
  schedule: Schedule,
  fromMs: number,
  toMs: number,
  reverse: boolean,
): Generator<{ slotMs: number; fires: boolean }> {
  const step = (from: number) => (reverse ? schedule.previous(from) : schedule.next(from));
  let slot = reverse ? schedule.previous(toMs + 1) : schedule.next(fromMs - 1);
  while (slot !== null && slot >= fromMs && slot <= toMs) {
    yield { slotMs: slot, fires: schedule.judge?.(slot, slot)?.skipped === undefined };
    slot = step(slot);
  }
}
