import type { Change } from "../../../base/change.ts";
import { type ClockVotes, type TimeBack, timeBackMs } from "../../../cluster/clock-votes.ts";
import type { StoreReading } from "../../store-clock.ts";
import { audited } from "../access/audit.ts";
import type { Database } from "../database.ts";
import { notifySql } from "./signals.ts";

/** SQL: the time of the store's clock, epoch milliseconds with fractions. */
export const rawMsSql = "extract(epoch from clock_timestamp()) * 1000";

export async function readClock(database: Database): Promise<StoreReading> {
  const [row] = await database.ask<StoreReading>(
    "clock",
    `select (${rawMsSql} + clock_shift_ms)::float8 as ms, clock_shift_ms as "shiftMs", clock_number as number
     from ${database.schema}.cluster`,
  );
  if (!row) throw new Error("the cluster row is missing");
  return row;
}

/** Reads only the store's clock, so it works even before the schema exists. */
export async function readRawClock(database: Database): Promise<number> {
  const [row] = await database.ask<{ ms: number }>("raw-clock", `select (${rawMsSql})::float8 as ms`);
  return row?.ms ?? Number.NaN;
}

export async function clockVotes(database: Database, prompt: boolean): Promise<ClockVotes> {
  const s = database.schema;
  const [row] = await database.ask<ClockVotes>(
    "clock-votes",
    `select k.clock_shift_ms as "shiftMs", k.clock_number as number, k.clock_since_ms as "sinceMs",
            (select coalesce(json_agg(json_build_object('sessionId', id, 'beat', beat,
               'offMs', clock_off_ms + k.clock_shift_ms, 'wallOffMs', wall_off_ms)), '[]')
             from ${s}.session where ended_ms is null and role = 'node') as votes,
            case when $1 then ${notifySql(s, "'leadership'")}::text end as told
     from ${s}.cluster k`,
    [prompt],
  );
  if (!row) throw new Error("the cluster row is missing");
  return row;
}

export async function shiftClock(database: Database, number: number, shiftMs: number, nowMs: number): Promise<boolean> {
  const s = database.schema;
  const rows = await database.ask(
    "clock-shift",
    `with shifted as (
       update ${s}.cluster set clock_shift_ms = $2::float8, clock_number = clock_number + 1,
         clock_since_ms = case when $2 = 0 then null else coalesce(clock_since_ms, $3) end,
         reached_ms = case when $3 - ${timeBackMs} > ${rawMsSql} + $2::float8 then greatest(reached_ms, $3) else reached_ms end
       where clock_number = $1 returning clock_number)
     select clock_number, ${notifySql(s, "'leadership'")}::text as told from shifted`,
    [number, shiftMs, Math.round(nowMs)],
  );
  return rows.length > 0;
}

export function adoptClock(database: Database, { nowMs, author, reason }: Change): Promise<number> {
  const s = database.schema;
  return database.transaction(async (client) => {
    const { rows } = await client.query(`select clock_shift_ms as "shiftMs" from ${s}.cluster for update`);
    const stepMs = -Number(rows[0]?.shiftMs ?? 0);
    if (stepMs === 0) return 0;
    await client.query(
      `update ${s}.cluster set clock_shift_ms = 0, clock_number = clock_number + 1, clock_since_ms = null,
         reached_ms = case when clock_shift_ms > ${timeBackMs} then greatest(reached_ms, ${rawMsSql} + clock_shift_ms) else reached_ms end`,
    );
    await audited(client, s, {
      atMs: nowMs,
      who: author,
      act: "adopt clock",
      about: "cluster",
      named: "clock",
      before: { shiftMs: -stepMs },
      after: { shiftMs: 0 },
      why: reason,
    });
    await client.query(`select ${notifySql(s, "'leadership'")}`);
    return stepMs;
  });
}

/**
 * Checks whether cluster time went back: the sessions and the row of the cluster record the highest time reached.
 * @returns undefined if cluster time did not go back
 */
export async function timeBack(database: Database, nowMs: number): Promise<TimeBack | undefined> {
  const s = database.schema;
  const [row] = await database.ask<TimeBack>(
    "time-back",
    `select r.reached as "reachedMs", (select min(started_ms) from ${s}.session where id > r.id) as "sinceMs",
            coalesce(k.replanned_ms >= r.reached, false) as replanned
     from ${s}.cluster k cross join lateral (
       select id, reached from (
         select id, greatest(seen_ms, ended_ms) as reached from ${s}.session union all select null, k.reached_ms) seen
       where reached > $1::bigint + ${timeBackMs} order by reached desc, id desc nulls last limit 1) r`,
    [Math.round(nowMs)],
  );
  return row;
}

/** Does the same as `timeBack` and records the result for the alarm, because alarms are evaluated too often to read all sessions. */
export async function noteTimeBack(database: Database, nowMs: number): Promise<TimeBack | undefined> {
  const back = await timeBack(database, nowMs);
  if (back)
    await database.ask(
      "note-time-back",
      `update ${database.schema}.cluster set reached_ms = $1 where reached_ms is null or reached_ms < $1`,
      [back.reachedMs],
    );
  return back;
}
