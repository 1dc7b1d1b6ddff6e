/**
 * Creates the runs that follow the end of a run: runs of tasks that follow its task, the next run of its chain, and the run that joins its
 * children. The first two are inserted in the transaction that ends the run, together with the records that a join or a task with several
 * predecessors needs. A run ends only once, so each is inserted only once. The check whether all awaited runs have ended is made after the
 * commit, because only then all other ends are visible: if two runs end at the same time, the later check sees both. The check deletes the
 * records, which only one of several concurrent checks can do. If the process crashes between the commit and the check, the dispatcher's
 * periodic check of all records makes up for it.
 *
 * The alternative, to count down in one row of the join, would make all its children wait for a single lock.
 */

import type { SqlClient } from "../../../base/change.ts";
import type { Onward } from "../../../run/flow.ts";
import { settleGates } from "../claims/gates.ts";
import type { Ended } from "../claims/settle.ts";
import { notifyReadySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { insertRunSql, slotPayload } from "../enqueue/new-run.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { runOutcome, runState } from "../states.ts";
import { followEnds } from "../tasks/upstream.ts";

/** A run that has just been ended in the caller's transaction. */
export interface EndedRun {
  settlement: Ended;
  slotMs: number | null;
  origin: number | null;
  parentId: number | null;
  limitKey: string | null;
  /** The enqueue that was stored in this run, to be made when the run ends: see enqueue/again.ts. */
  again: { runId: number } | null;
  /** True if an operator, or the run that replaces this run, requested this run's cancellation. */
  cancelling: boolean;
  /** True if other tasks follow the run's task. */
  followed: boolean;
}

const [child, after, chain, join] = (["child", "after", "chain", "join"] as const).map(sourceNumber);
const told = (s: string) => notifyReadySql(s, `made where state = ${runState.ready}`);

/** Collects the work that remains to be done once the ends of runs have been committed. */
export class LooseEnds {
  /** Parent runs of children that have ended, and ended runs whose children a join waits for. */
  readonly parents = new Set<number>();
  /** Tasks that other tasks follow and whose runs have ended. */
  readonly upstream = new Set<number>();
  /** Tasks with new runs that wait for a concurrency limit. */
  readonly held = new Set<number>();
}

/**
 * Inserts the runs that follow these ended runs, in the same transaction. While a run is continued by another run, no runs of following
 * tasks are created. If a run's cancellation was requested, it is neither continued nor joined, even if it succeeded and its verdict asks
 * for this. If its verdict was to continue, or it ended as cancelled, no run of a following task is created either: its chain is
 * incomplete.
 */
export async function follow(
  client: SqlClient,
  s: string,
  ended: EndedRun[],
  nowMs: number,
  loose: LooseEnds,
): Promise<void> {
  const now = Math.round(nowMs);
  const over = ended.filter(({ followed, settlement: { verdict } }) => followed && verdict.onward?.kind !== "continue");
  if (over.length > 0) {
    for (const { settlement } of over) loose.upstream.add(settlement.taskId);
    for (const taskId of await comeAfter(client, s, over, now)) loose.held.add(taskId);
  }
  for (const run of ended) {
    const { runId, verdict } = run.settlement;
    const { onward } = verdict;
    if (run.parentId !== null) loose.parents.add(run.parentId);
    if (run.cancelling) {
      if (onward) await leaveUnbegun(client, s, run.settlement, onward);
      continue;
    }
    if (onward?.kind === "join") {
      loose.parents.add(runId);
      await gather(client, s, run, onward, now);
    }
    if (onward?.kind === "continue" && (await goOn(client, s, run, onward, now))) loose.held.add(run.settlement.taskId);
  }
}

export async function tieUp(database: Database, { parents, upstream, held }: LooseEnds, nowMs: number): Promise<void> {
  if (held.size > 0)
    await database.transaction((client) => settleGates(client, database.schema, [...held], nowMs, false));
  if (parents.size > 0) await fireJoins(database, [...parents], nowMs);
  if (upstream.size > 0) await fireArrivals(database, [...upstream], nowMs);
}

/** Returns all work that may remain after ends of runs, for a commit whose reply was lost. */
export async function looseEndsOf(database: Database, ended: { runId: number; taskId: number }[]): Promise<LooseEnds> {
  const s = database.schema;
  const loose = new LooseEnds();
  for (const { runId, taskId } of ended) {
    loose.parents.add(runId);
    loose.upstream.add(taskId);
    loose.held.add(taskId);
  }
  const [row] = await database.query<{ parents: number[]; followers: number[] }>(
    "loose-ends",
    `select array(select distinct parent_id::float8 from ${s}.run_history where id = any($1) and parent_id is not null) as parents,
            array(select task_id from ${s}.follow where upstream_id = any($2)) as followers`,
    [[...loose.parents], [...loose.upstream]],
  );
  for (const parent of row?.parents ?? []) loose.parents.add(parent);
  for (const taskId of row?.followers ?? []) loose.held.add(taskId);
  return loose;
}

/** Inserts runs of tasks that follow the ended runs' tasks. @returns the tasks of inserted runs that wait for a concurrency limit */
async function comeAfter(client: SqlClient, s: string, ended: EndedRun[], now: number): Promise<number[]> {
  const { rows } = await client.query(
    `with hit as materialized (
       select e.*, f.task_id as follower, f.several, coalesce(e.slot_ms, e.origin, e.id) as began
       from unnest($1::bigint[], $2::int[], $3::smallint[], $4::bigint[], $5::bigint[]) as e (id, task_id, outcome, slot_ms, origin)
       join ${s}.follow f on f.upstream_id = e.task_id and e.outcome < ${runOutcome.cancelled} and f.ends in (e.outcome, ${followEnds.any})
       join ${s}.task t on t.id = f.task_id and t.deleted_ms is null
     ), made as (
       ${insertRunSql(s, {
         due_ms: "$6::bigint",
         created_ms: "$6::bigint",
         source: `${after}`,
         payload: slotPayload,
         parent_id: "h.id",
         slot_ms: "h.slot_ms",
         origin: "h.began",
       })}
       from hit h join ${s}.task t on t.id = h.follower where not h.several order by h.id returning task_id, state, due_ms, group_id
     ), come as (
       insert into ${s}.arrival (task_id, origin, upstream_id, run_id, slot_ms, at_ms)
       select distinct on (follower, began, task_id) follower, began, task_id, id, slot_ms, $6::bigint from hit where several
       order by follower, began, task_id, id desc
       on conflict (task_id, origin, upstream_id) do update set run_id = excluded.run_id, at_ms = excluded.at_ms
     ), told as (${told(s)})
     select task_id, state, (select count(*) from told) from made`, // without a reference to `told`, PostgreSQL would not send the signal
    [
      ended.map(({ settlement }) => settlement.runId),
      ended.map(({ settlement }) => settlement.taskId),
      ended.map(({ settlement }) => runOutcome[settlement.verdict.outcome]),
      ended.map(({ slotMs }) => slotMs),
      ended.map(({ origin }) => origin),
      now,
    ],
  );
  return rows.filter(({ state }) => state === runState.held).map((row) => row.task_id as number);
}

/** Records the follow-up run that was not created because of a cancellation, so that a repeated verdict is recognised. */
async function leaveUnbegun(client: SqlClient, s: string, ended: Ended, onward: Onward): Promise<void> {
  const { runId, fence, endedMs, taskId } = ended;
  const [source, task] = onward.kind === "join" ? [join, onward.taskId] : [chain, taskId];
  await client.query(
    `update ${s}.run_history set unbegun = jsonb_build_object('source', $4::smallint, 'task', $5::int)
       || case when $6::jsonb is null then '{}' else jsonb_build_object('payload', $6::jsonb) end
     where ended_ms = $3 and id = $1 and fence = $2`,
    [runId, fence, Math.round(endedMs), source, task, onward.payload],
  );
}

/**
 * Inserts the next run of a chain. If the ended run is a child, the next run is a child of the same parent with the same key; otherwise the
 * ended run becomes the parent. The next run gets the ended run's limit key, because otherwise it would run at the same time as other runs
 * with this key. It gets the part number of a split run, because otherwise it would be split into all parts again. It also gets the enqueue
 * that was stored in the ended run: the statement that ended that run has already inserted a run for it, which is deleted here before any
 * other process sees it.
 * @returns true if the new run waits for a concurrency limit
 */
async function goOn(
  client: SqlClient,
  s: string,
  { settlement: { runId }, slotMs, origin, limitKey, again }: EndedRun,
  onward: { payload: string | null; state: string | null },
  now: number,
): Promise<boolean> {
  if (again) await client.query(`delete from ${s}.run where id = $1`, [again.runId]);
  const { rows } = await client.query(
    `with made as (
       ${insertRunSql(s, {
         due_ms: "$2::bigint",
         created_ms: "$2::bigint",
         source: `case when h.source = ${child} then ${child} else ${chain} end`,
         key: "h.key",
         payload: "$3::jsonb",
         checkpoint: "$4::jsonb",
         limit_key: "coalesce($6, case when t.lanes then coalesce(h.key, '') end)",
         parent_id: `case when h.source = ${child} then h.parent_id else h.id end`,
         inputs: "array[h.id]",
         slot_ms: "h.slot_ms",
         origin: "$5",
         shard: "h.shard",
         overrides: "h.overrides",
         labels: "h.labels",
         again: "$7::jsonb",
       })}
       from ${s}.run_history h join ${s}.task t on t.id = h.task_id and t.deleted_ms is null where h.id = $1 returning state, due_ms, group_id),
     told as (${told(s)})
     select state, (select count(*) from told) from made`,
    [runId, now, onward.payload, onward.state, slotMs ?? origin ?? runId, limitKey, again && JSON.stringify(again)],
  );
  return rows[0]?.state === runState.held;
}

async function gather(
  client: SqlClient,
  s: string,
  { settlement: { runId }, slotMs, origin }: EndedRun,
  { taskId, payload }: { taskId: number; payload: string | null },
  now: number,
): Promise<void> {
  await client.query(
    `insert into ${s}.gathering (parent_id, task_id, payload, slot_ms, origin, at_ms) values ($1, $2, $3, $4, $5, $6)`,
    [runId, taskId, payload, slotMs, slotMs ?? origin ?? runId, now],
  );
}

/**
 * Creates the joining run of each parent whose children have all ended, if its task is not removed. It can be repeated.
 * @param parents the numbers of the parents to check; null for all
 */
export async function fireJoins(database: Database, parents: number[] | null, nowMs: number): Promise<void> {
  const s = database.schema;
  const text = `
    with whole as materialized (
      select g.parent_id from ${s}.gathering g
      where ${parents === null ? "$1::bigint[] is null" : "g.parent_id = any($1::bigint[])"}
        and not exists (select from ${s}.run r where r.parent_id = g.parent_id and r.source = ${child})
      order by g.parent_id limit ${firedMost} for update skip locked
    ), gone as (
      delete from ${s}.gathering g using whole where g.parent_id = whole.parent_id returning g.*
    ), made as (
      ${insertRunSql(s, {
        due_ms: "$2::bigint",
        created_ms: "$2::bigint",
        source: `${join}`,
        payload: "g.payload",
        parent_id: "g.parent_id",
        slot_ms: "g.slot_ms",
        origin: "g.origin",
      })}
      from gone g join ${s}.task t on t.id = g.task_id and t.deleted_ms is null returning task_id, state, due_ms, group_id
    ), ${firedSql(s, "whole")}`;
  await fireAll(database, { name: parents === null ? "fire-any-join" : "fire-joins", text, ids: parents }, nowMs);
}

/**
 * Creates the run of each task with several predecessors, once per origin, when runs of all predecessors have ended with the required
 * outcomes. It can be repeated.
 * @param upstreamIds the predecessors whose ends are checked; null for all
 */
export async function fireArrivals(database: Database, upstreamIds: number[] | null, nowMs: number): Promise<void> {
  const s = database.schema;
  const text = `
    with full_set as materialized (
      select a.task_id, a.origin from ${s}.arrival a join ${s}.follow f on f.task_id = a.task_id and f.upstream_id = a.upstream_id
      where ${
        upstreamIds === null
          ? "$1::int[] is null"
          : `a.task_id in (select task_id from ${s}.follow where upstream_id = any($1::int[]) and several)`
      }
      group by a.task_id, a.origin
      having count(*) = (select count(*) from ${s}.follow f where f.task_id = a.task_id) limit ${firedMost}
    ), mine as materialized (
      select a.task_id, a.origin, a.upstream_id from ${s}.arrival a join full_set using (task_id, origin)
      order by 1, 2, 3 for update of a
    ), gone as (
      delete from ${s}.arrival a using mine where (a.task_id, a.origin, a.upstream_id) = (mine.task_id, mine.origin, mine.upstream_id)
      returning a.*
    ), whole as (
      select task_id, origin, max(slot_ms) as slot_ms, array_agg(run_id order by run_id) as inputs from gone group by 1, 2
    ), made as (
      ${insertRunSql(s, {
        due_ms: "$2::bigint",
        created_ms: "$2::bigint",
        source: `${after}`,
        payload: slotPayload,
        inputs: "w.inputs",
        slot_ms: "w.slot_ms",
        origin: "w.origin",
      })}
      from whole w join ${s}.task t on t.id = w.task_id and t.deleted_ms is null returning task_id, state, due_ms, group_id
    ), ${firedSql(s, "full_set")}`;
  const name = upstreamIds === null ? "fire-any-arrival" : "fire-arrivals";
  await fireAll(database, { name, text, ids: upstreamIds }, nowMs);
}

/** The most runs that one statement creates. If it creates this many, it is repeated, because there may be more. */
const firedMost = 1_000;

const firedSql = (s: string, found: string) => `told as (${told(s)})
    select (select count(*) from ${found}) as found, array(select distinct task_id from made where state = ${runState.held}) as held,
           (select count(*) from told)`;

interface Firing {
  name: string;
  text: string;
  /** The numbers of the parents or predecessors whose ends are checked; null for all. */
  ids: number[] | null;
}

async function fireAll(database: Database, { name, text, ids }: Firing, nowMs: number): Promise<void> {
  for (let found = firedMost; found === firedMost; ) {
    const [fired] = await database.persist(() =>
      database.query<{ found: number; held: number[] }>(name, text, [ids, Math.round(nowMs)]),
    );
    found = fired?.found ?? 0;
    const held = fired?.held ?? [];
    // If the process crashes before this, held runs stay held although slots are free, until the dispatcher's periodic check finds them.
    if (held.length > 0)
      await database.transaction((client) => settleGates(client, database.schema, held, nowMs, false));
  }
}
