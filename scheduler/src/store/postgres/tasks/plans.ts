import type { Authority } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import type { DuePlan, PlanStore, PlanWrite, SetAside } from "../../../slots/plan-store.ts";
import { settleGates } from "../claims/gates.ts";
import { notifyReadySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { insertRunSql, slotPayload } from "../enqueue/new-run.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { rangeColumns, recordSlotsSql, slotKind } from "../events/recording.ts";
import { fireArrivals, fireJoins } from "../flow/following.ts";
import { type Query, queryIn, queryOf } from "../query.ts";
import { runState, slotOutcome } from "../states.ts";
import { ensureLedger } from "./history.ts";

export function planStore(database: Database): PlanStore {
  return {
    due: (untilMs, limit, setAside = []) => due(database, untilMs, limit, setAside),
    nth: (untilMs, n, setAside = []) => nth(database, untilMs, n, setAside),
    accept: (authority, writes, nowMs) => accept(database, authority, writes, nowMs),
    admitHeld: (untilMs, nowMs) => admitHeld(database, untilMs, nowMs),
  };
}

/*
 * SQL: plans slots. In one statement it sets each task's next slot by compare-and-set, then inserts slots, runs and ranges for the tasks
 * whose next slot it has set. A plan row that another transaction is writing is skipped (SKIP LOCKED): the other transaction is either a
 * planner that does the same, or an edit after which this step would be wrong. The statement takes a share lock on the row of the
 * leadership, so that no later term can begin between the check of the leader's authority and the commit. The plans are locked one by one
 * (lateral): as a join, PostgreSQL read all plans in the order of their tasks, 143 ms for 2,000 of 110,000, for each statement.
 */
const acceptSql = (s: string, { skips, moves }: Extras) => `
  with alive as materialized (
    select 1 from ${s}.session where id = $1 and ended_ms is null for key share
  ), leads as materialized (
    select 1 from ${s}.leadership where term = $2 and session_id = $1 for share
  ), authority as materialized (
    select 1 where exists (select from alive) and ($2::bigint is null or exists (select from leads))
  ), steps as (
    select * from unnest($3::int[], $4::int[], $5::bigint[], $6::bigint[]) as i (task_id, version, expected, next_slot)
  ), held as materialized (
    select p.task_id, i.next_slot from steps i cross join lateral (
      select task_id from ${s}.plan where task_id = i.task_id and next_slot_ms = i.expected and version = i.version and not paused
      for update skip locked) p
    where exists (select from authority)
  ), advanced as (
    update ${s}.plan p set next_slot_ms = held.next_slot from held where p.task_id = held.task_id
    returning p.task_id, p.version, p.after_end_ms
  ), accepted as (
    insert into ${s}.slot (task_id, slot_ms, outcome, run_id, reason, term, accepted_ms)
    select i.task_id, i.slot_ms, ${slotOutcome.run}, nextval('${s}.run_id'), i.note, $2, $7
    from unnest($8::int[], $9::bigint[], $16::text[]) as i (task_id, slot_ms, note) join advanced using (task_id)
    on conflict do nothing returning task_id, slot_ms, run_id, reason
  ), ${recordSlotsSql(s, "recorded", "accepted e", {
    kind: `case when e.slot_ms < $7 then ${slotKind.caughtUp} else ${slotKind.planned} end`,
    task: "e.task_id",
    slot: "e.slot_ms",
    run: "e.run_id",
    why: "e.reason",
    now: "$7",
  })}, runs as (
    ${insertRunSql(s, {
      id: "a.run_id",
      task_id: "a.task_id",
      version: "v.version",
      state: `case when t.gate > 0 then ${runState.held} else ${runState.ready} end`,
      due_ms: "i.due_ms",
      created_ms: "$7",
      after_end: "v.after_end_ms is not null",
      source: `${sourceNumber("slot")}`,
      payload: slotPayload,
      slot_ms: "a.slot_ms",
    })}
    from accepted a join unnest($8::int[], $9::bigint[], $10::bigint[]) as i (task_id, slot_ms, due_ms)
           on i.task_id = a.task_id and i.slot_ms = a.slot_ms
         join advanced v on v.task_id = a.task_id join ${s}.task t on t.id = a.task_id
    returning due_ms, group_id
  ), ranges as (
    insert into ${s}.slot_range (task_id, version, from_ms, to_ms, slots, outcome, reason, recorded_ms)
    select v.task_id, v.version, i.from_ms, i.to_ms, i.slots, i.outcome, i.reason, $7
    from unnest($11::int[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $17::smallint[])
         as i (task_id, from_ms, to_ms, slots, reason, outcome)
         join advanced v using (task_id)
    returning task_id, slots, outcome, from_ms, to_ms, reason
  ), ${recordSlotsSql(s, "recorded_ranges", "ranges e", rangeColumns("$7"))}, counted as (
    insert into ${s}.tally_delta (task_id, missed, skipped)
    select task_id, coalesce(sum(slots) filter (where outcome = ${slotOutcome.missed}), 0), coalesce(sum(slots) filter (where outcome = ${slotOutcome.skipped}), 0)
    from ranges where slots is not null group by task_id
  )${skips ? skippedSql(s) : ""}${moves > 0 ? movedSql(s, moves) : ""}
  select (select count(*) from authority)::int as authority,
         (select coalesce(array_agg(task_id), '{}') from advanced) as taken,
         (select count(*) from runs)::int as accepted,
         (${notifyReadySql(s, "runs")})`;

async function due(
  database: Database,
  untilMs: number,
  limit: number,
  setAside: readonly SetAside[],
): Promise<DuePlan[]> {
  const { name, isDue, values } = dueBy(setAside);
  return database.query<DuePlan>(
    `plan-due${name}`,
    `select task_id as "taskId", version, next_slot_ms as "nextSlotMs" from ${database.schema}.plan
     where ${isDue} order by next_slot_ms limit $2`,
    [Math.round(untilMs), limit, ...values],
  );
}

async function nth(
  database: Database,
  untilMs: number,
  n: number,
  setAside: readonly SetAside[],
): Promise<number | null> {
  const { name, isDue, values } = dueBy(setAside);
  const [row] = await database.query<{ atMs: number }>(
    `plan-nth${name}`,
    `select next_slot_ms as "atMs" from ${database.schema}.plan where ${isDue} order by next_slot_ms offset $2 limit 1`,
    [Math.round(untilMs), n - 1, ...values],
  );
  return row?.atMs ?? null;
}

/** SQL: the condition for plans that are due by $1 and not set aside, with the values from $3 on and the end of the statement's name. */
function dueBy(setAside: readonly SetAside[]) {
  const isDue = "next_slot_ms <= $1 and not paused";
  if (setAside.length === 0) return { name: "", isDue, values: [] };
  return {
    name: "-others",
    // PostgreSQL hashes the list of `not in`, so even thousands of excluded tasks cost only one probe per plan.
    isDue: `${isDue} and (task_id, version) not in (select * from unnest($3::int[], $4::int[]))`,
    values: [setAside.map(({ taskId }) => taskId), setAside.map(({ version }) => version)],
  };
}

async function accept(
  database: Database,
  authority: Authority,
  writes: PlanWrite[],
  nowMs: number,
): Promise<{ taken: Set<number>; accepted: number }> {
  const s = database.schema;
  const given = acceptValues(authority, writes, nowMs);
  await ensureLedger(
    database,
    writes.flatMap(({ slots }) => slots.map(({ slotMs }) => slotMs)),
    nowMs,
  );
  const gated = writes.filter((write) => write.gated).map(({ taskId }) => taskId);
  // The statement has no name: a prepared one would use the plan cached for small batches, which takes seconds for ten thousand tasks.
  if (gated.length === 0) return take(queryOf(database), s, given);
  return database.transaction(async (client) => {
    const result = await take(queryIn(client), s, given);
    await settleGates(
      client,
      s,
      gated.filter((taskId) => result.taken.has(taskId)),
      nowMs,
      false,
    );
    return result;
  });
}

/** Runs the planning statement. @throws FENCE_STALE if the session or the term of this node is over */
async function take(
  query: Query,
  s: string,
  { values, extras }: Given,
): Promise<{ taken: Set<number>; accepted: number }> {
  const [row] = await query<AcceptRow>("", acceptSql(s, extras), values);
  if (!row || row.authority === 0) {
    throw new CarillonError("FENCE_STALE", "this node's session or term is over, so its plan was refused");
  }
  return { taken: new Set(row.taken), accepted: row.accepted };
}

async function admitHeld(database: Database, untilMs: number, nowMs: number): Promise<number | null> {
  const s = database.schema;
  await fireJoins(database, null, nowMs);
  await fireArrivals(database, null, nowMs);
  // If no run waits, only this one statement is executed. The tasks that it returns are candidates; `settleGates` checks them under
  // locks.
  const look = async () => {
    const [found] = await database.query<{ taskIds: number[]; nextMs: number | null }>(
      "plan-held",
      `select array(select task_id from ${s}.gate g where exists (
                select from ${s}.run r where r.task_id = g.task_id and r.state = ${runState.held} and r.gate > 0 and r.due_ms <= $1)) as "taskIds",
              (select min(due_ms) from ${s}.run where state = ${runState.held} and gate > 1 and due_ms > $1) as "nextMs"`,
      [Math.round(untilMs)],
    );
    if (!found) throw new Error("a select without FROM gave no row");
    return found;
  };
  const { taskIds, nextMs } = await look();
  if (taskIds.length === 0) return nextMs;
  await database.transaction((client) => settleGates(client, s, taskIds, nowMs, false));
  return (await look()).nextMs;
}

/** SQL: slots that a calendar or a blackout excludes get a row in the slot table with the reason, and no run. */
const skippedSql = (s: string) => `, skipped as (
      insert into ${s}.slot (task_id, slot_ms, outcome, reason, term, accepted_ms)
      select i.task_id, i.slot_ms, ${slotOutcome.skipped}, i.reason, $2, $7
      from unnest($18::int[], $19::bigint[], $20::text[]) as i (task_id, slot_ms, reason) join advanced using (task_id)
      on conflict do nothing returning task_id, slot_ms, reason
    ), ${recordSlotsSql(s, "recorded_skips", "skipped e", {
      kind: `${slotKind.skipped}`,
      task: "e.task_id",
      slot: "e.slot_ms",
      why: "e.reason",
      now: "$7",
    })}, counted_skips as (
      insert into ${s}.tally_delta (task_id, skipped) select task_id, count(*) from skipped group by task_id
    )`;

/** SQL: records the nominal times of slots that a calendar has moved. @param first the number of the first of three SQL parameters */
const movedSql = (s: string, first: number) => `, moved as (
      insert into ${s}.moved_slot (task_id, nominal_ms, slot_ms)
      select i.* from unnest($${first}::int[], $${first + 1}::bigint[], $${first + 2}::bigint[]) as i (task_id, nominal_ms, slot_ms)
      join advanced using (task_id)
      on conflict (task_id, nominal_ms) do update set slot_ms = excluded.slot_ms
    )`;

/** Which optional parts of the statement are needed; few tasks need any. */
interface Extras {
  skips: boolean;
  /** The number of the first SQL parameter for moved slots; 0 if there are none. */
  moves: number;
}

interface Given {
  values: unknown[];
  extras: Extras;
}

interface AcceptRow {
  authority: number;
  taken: number[];
  accepted: number;
}

function acceptValues(authority: Authority, writes: PlanWrite[], nowMs: number): Given {
  const all = writes.flatMap(({ taskId, slots }) => slots.map((slot) => ({ taskId, ...slot })));
  const slots = all.filter(({ skipped }) => skipped === undefined);
  const skips = all.length === slots.length ? [] : all.filter(({ skipped }) => skipped !== undefined);
  const missed = writes.flatMap(({ taskId, missed }) => missed.map((range) => ({ taskId, ...range })));
  const moves = all.flatMap(({ taskId, slotMs, nominalMs = [] }) =>
    nominalMs.map((atMs) => ({ taskId, atMs, slotMs })),
  );
  const values: unknown[] = [
    authority.sessionId,
    authority.term,
    writes.map(({ taskId }) => taskId),
    writes.map(({ version }) => version),
    writes.map(({ nextSlotMs }) => nextSlotMs),
    writes.map(({ newNextSlotMs }) => newNextSlotMs),
    Math.round(nowMs),
    slots.map(({ taskId }) => taskId),
    slots.map(({ slotMs }) => slotMs),
    slots.map(({ dueMs }) => dueMs),
    missed.map(({ taskId }) => taskId),
    missed.map(({ fromMs }) => fromMs),
    missed.map(({ toMs }) => toMs),
    missed.map(({ count }) => count),
    missed.map(({ reason }) => reason),
    slots.map(({ note }) => note ?? null),
    missed.map(({ outcome }) => slotOutcome[outcome ?? "missed"]),
  ];
  if (skips.length > 0)
    values.push(
      skips.map(({ taskId }) => taskId),
      skips.map(({ slotMs }) => slotMs),
      skips.map(({ skipped }) => skipped),
    );
  const extras = { skips: skips.length > 0, moves: moves.length > 0 ? values.length + 1 : 0 };
  if (moves.length > 0)
    values.push(
      moves.map(({ taskId }) => taskId),
      moves.map(({ atMs }) => atMs),
      moves.map(({ slotMs }) => slotMs),
    );
  return { values, extras };
}
