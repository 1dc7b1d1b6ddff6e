/** Which of a task's nominal times have their account, and what an edit owes to those that have none. See docs/calendars.md. */
import type { SqlClient } from "../../../base/change.ts";
import { compileSchedule, type Schedule, type ScheduleSpec } from "../../../schedule/schedule.ts";
import { placesOf, type Ruled, slotsPassed, slotsPutOff } from "../../../schedule/slot-rules.ts";
import type { Database } from "../database.ts";
import { slotOutcome } from "../states.ts";
import { ensureLedger } from "./history.ts";

/** Ranges of other versions are few; of a range that lies ahead no more of its times are looked at. */
const rangeTimesMax = 10_000;

interface Range {
  fromMs: number;
  toMs: number;
  schedule: Schedule;
}

async function rangesOver(
  client: SqlClient,
  s: string,
  taskId: number,
  fromMs: number,
  toMs: number,
): Promise<Range[]> {
  const { rows } = await client.query(
    `select r.from_ms::float8 as "fromMs", r.to_ms::float8 as "toMs", v.definition->'schedule' as spec
     from ${s}.slot_range r join ${s}.task_version v using (task_id, version)
     where r.task_id = $1 and r.to_ms >= $2 and r.from_ms <= $3`,
    [taskId, Math.floor(fromMs), Math.ceil(toMs)],
  );
  return rows.map(({ fromMs, toMs, spec }) => ({
    fromMs: fromMs as number,
    toMs: toMs as number,
    schedule: compileSchedule(spec as ScheduleSpec),
  }));
}

/** The given nominal times that a row of the ledger or a range accounts for. */
export async function accountedOf(
  client: SqlClient,
  s: string,
  taskId: number,
  nominalMs: readonly number[],
): Promise<Set<number>> {
  if (nominalMs.length === 0) return new Set();
  const { rows } = await client.query(
    `select l.slot_ms::float8 as "atMs" from ${s}.slot l
     where l.task_id = $1 and l.slot_ms = any($2)
       and not exists (select from ${s}.moved_slot m where m.task_id = $1 and m.slot_ms = l.slot_ms)
     union all
     select m.nominal_ms::float8 from ${s}.moved_slot m join ${s}.slot l using (task_id, slot_ms)
     where m.task_id = $1 and m.nominal_ms = any($2)`,
    [taskId, nominalMs],
  );
  const accounted = new Set(rows.map(({ atMs }) => atMs as number));
  const [first, last] = [nominalMs.reduce((a, b) => Math.min(a, b)), nominalMs.reduce((a, b) => Math.max(a, b))];
  for (const { fromMs, toMs, schedule } of await rangesOver(client, s, taskId, first, last))
    for (const atMs of nominalMs)
      if (fromMs <= atMs && atMs <= toMs && schedule.next(atMs - 1) === atMs) accounted.add(atMs);
  return accounted;
}

/** Nominal times whose slots lie ahead, and that have their account under another time than that of their slot. */
export async function accountedAhead(
  client: SqlClient,
  s: string,
  taskId: number,
  ruled: Ruled,
  nowMs: number,
): Promise<number[]> {
  const placeOf = placesOf(ruled);
  const off = await accountedOf(client, s, taskId, slotsPutOff(ruled, nowMs));
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
  for (const { fromMs, toMs, schedule } of await rangesOver(client, s, taskId, nowMs, Number.MAX_SAFE_INTEGER)) {
    let atMs = schedule.next(Math.max(fromMs - 1, nowMs));
    for (let looks = 0; atMs !== null && atMs <= toMs && looks < rangeTimesMax; looks++) {
      ahead.add(atMs);
      atMs = schedule.next(atMs);
    }
  }
  const liesElsewhere = (atMs: number) => {
    const slotMs = placeOf(atMs);
    // A slot that is claimed where it lies is still shown, and its row keeps it from being planned twice.
    return slotMs !== null && slotMs > nowMs && slotMs !== accountedAt.get(atMs);
  };
  return [...ahead].filter(liesElsewhere).sort((a, b) => a - b);
}

/**
 * Two slots that come to lie on one instant are one. Where that one is claimed already, and so is not planned again, its row is told of the
 * nominal times that an edit moves to it.
 */
export async function joinClaimed(
  client: SqlClient,
  s: string,
  taskId: number,
  schedule: Schedule,
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

/** Slots that an edit moves to before now, where nobody would plan them: told as skipped at their nominal times, which are to come. */
export async function skipPassed(
  database: Database,
  client: SqlClient,
  taskId: number,
  ruled: Ruled,
  nowMs: number,
): Promise<void> {
  const s = database.schema;
  const passed = slotsPassed(ruled, nowMs);
  const accounted = await accountedOf(client, s, taskId, passed);
  const slotsMs = passed.filter((atMs) => !accounted.has(atMs));
  if (slotsMs.length === 0) return;
  await ensureLedger(database, slotsMs, nowMs);
  await client.query(
    `with skipped as (
       insert into ${s}.slot (task_id, slot_ms, outcome, reason, accepted_ms)
       select $1, slot_ms, ${slotOutcome.skipped}, 'calendar: moved to a time that had passed', $3 from unnest($2::bigint[]) as i (slot_ms)
       on conflict do nothing returning 1)
     insert into ${s}.tally_delta (task_id, skipped) select $1, count(*) from skipped having count(*) > 0`,
    [taskId, slotsMs, Math.round(nowMs)],
  );
}
