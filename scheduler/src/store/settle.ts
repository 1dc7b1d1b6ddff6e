import type { Settlement } from "../store.ts";
import { numbers, texts } from "./columns.ts";
import { makesRoomSql, unlimitedGroupSql } from "./group-limits.ts";
import { rated } from "./retry-tokens.ts";
import { inheritedColumns } from "./run-rows.ts";
import { notifyReadySql, notifySql, unaddressed } from "./signals.ts";

const outcomeNumbers = { succeeded: 0, failed: 1, cancelled: 2 } as const;

/** Whoever writes many runs does it in the order of their numbers, so that no two wait for each other; of a backlog they come so. */
export function byNumber<Item extends { readonly runId: number }>(given: Item[]): Item[] {
  const rises = given.every(({ runId }, i) => i === 0 || runId >= (given[i - 1] as Item).runId);
  return rises ? given : given.toSorted((a, b) => a.runId - b.runId);
}

/** What a verdict `i` is about, while its claim stands. */
const standing = "r.id = i.id and r.fence = i.fence and r.state + 0 = 3";

/*
 * Ends of runs, as many as came together, in one statement: out of the live table where the fence is still the run's,
 * into history, and one counter row a task. Nobody's lock is waited for: the runs are ours, all else is inserted.
 * Measured beside a separate INSERT: one statement saves a round trip and a commit. `more`: statements beside it;
 * `answer`: what is told of `gone`. `kept`: false where those that went well leave no row; see unkept below.
 *
 * Not `state = 3`, here and wherever claims come by their numbers: with statistics of a moment at which nothing was claimed, the planner would take the index of claims
 * for the smallest and compare every claim with every verdict: 400 ms for 350 of them. And arrays behind a select, whose
 * length it cannot see: for 2,000 verdicts on 100,000 runs it would read all of these instead of asking the key.
 */
export const finishSql = (s: string, more = "", answer = endedSql, kept = true) => `
  with i as (
    select id, fence, coalesce(outcome, 0::smallint) as outcome, started_in + $8::bigint as started_ms, ended_in + $8::bigint as ended_ms, result, error
    from unnest((select $1::bigint[]), (select $2::bigint[]), (select $3::smallint[]), (select $4::bigint[]),
                (select $5::bigint[]), (select $6::jsonb[]), (select $7::jsonb[])) as i (id, fence, outcome, started_in, ended_in, result, error)
  ), gone as (
    delete from ${s}.run r using i where ${standing}
    returning r.id, r.due_ms, r.slot_ms, r.fence, r.session_id, r.claimed_ms, r.created_ms, i.started_ms, i.ended_ms, r.task_id,
              r.version, r.attempt, i.outcome, r.priority, r.source, r.key, r.payload, r.parent_id, r.inputs, r.limit_key, r.shard, r.origin, i.result, i.error,
              r.recall = 1 as cancelling, r.gate > 0 or r.after_end as linked
  ), told as (
    insert into ${s}.run_history (id, due_ms, slot_ms, fence, session_id, claimed_ms, created_ms, started_ms, ended_ms, task_id,
                                  version, attempt, outcome, priority, source, key, payload, result, error, ${inheritedColumns})
    select id, due_ms, slot_ms, fence, session_id, claimed_ms, created_ms, started_ms, ended_ms, task_id, version, attempt, outcome,
           priority, source, key, payload, result, error, ${inheritedColumns} from gone${kept ? "" : unkept(s)}
  ), counted as (
    insert into ${s}.tally_delta (task_id, succeeded, failed, cancelled)
    select task_id, count(*) filter (where outcome = 0), count(*) filter (where outcome = 1), count(*) filter (where outcome = 2)
    from gone group by task_id
  )${more}
  ${answer}`;

/** All in one row: how many ended, which where it is not all of them, and of which tasks that count their places or plan from an end. */
const endedSql = `select count(*) as ended, array_agg(fence) filter (where (select count(*) from gone) < cardinality($1::bigint[])) as fences,
    array_agg(distinct task_id) filter (where linked) as linked from gone`;

export interface EndedTogether {
  ended: number;
  fences: number[] | null;
  linked: number[] | null;
}

/** Of those that were to end, who did. */
export function fencesOf(told: EndedTogether | undefined, asked: readonly Settlement[]): number[] {
  return told?.ended === asked.length ? asked.map(({ fence }) => fence) : (told?.fences ?? []);
}

/*
 * Other runs read the rows of children, of what they go on from, and of what they come after: those are kept all the same.
 * Of the others a trace is left, so that what was done can be told from what was not, should a reply get lost.
 */
const unkept = (s: string) => `
    where ${readByOthers(s, "gone")}
  ), ${tracedSql(s)}`;

const readByOthers = (s: string, run: string) =>
  `(${run}.parent_id is not null or ${run}.inputs is not null or exists (select from ${s}.follow f where f.upstream_id = ${run}.task_id))`;

const tracedSql = (s: string) => `traced as (
    insert into ${s}.run_trace (ended_ms, run_ids, fences)
    select max(ended_ms), array_agg(id), array_agg(fence) from gone having count(*) > 0`;

/**
 * Successes that leave no row: what `finishSql` does with them, for these alone and by a sixth quicker: it carries nothing of
 * what a row of history has. Those that others read it leaves to that.
 *
 * $1 numbers, $2 fences, $3 ends from $4 on
 */
export const leaveSql = (s: string) => `
  with i as (
    select id, fence, ended_in + $4::bigint as ended_ms
    from unnest((select $1::bigint[]), (select $2::bigint[]), (select $3::bigint[])) as i (id, fence, ended_in)
  ), gone as (
    delete from ${s}.run r using i where ${standing} and not ${readByOthers(s, "r")}
    returning r.fence, r.id, r.task_id, i.ended_ms, r.gate > 0 or r.after_end as linked
  ), ${tracedSql(s)}
  ), counted as (
    insert into ${s}.tally_delta (task_id, succeeded) select task_id, count(*) from gone group by task_id
  )
  ${endedSql}`;

export function leaveValues(items: readonly Settlement[]): unknown[] {
  const { runId, fence, endedIn, sinceMs } = endedColumns(items);
  return [runId, fence, endedIn, sinceMs];
}

/** Times travel as what they are from one of them: of full ones most of the work was to write and read their digits. */
function endedColumns(items: readonly Settlement[]) {
  const sinceMs = Math.round(items[0]?.endedMs ?? 0);
  return {
    sinceMs,
    runId: numbers(items.map(({ runId }) => runId)),
    fence: numbers(items.map(({ fence }) => fence)),
    endedIn: numbers(items.map(({ endedMs }) => Math.round(endedMs) - sinceMs)),
  };
}

/** What `follow` must know of each ended run, and whether others wait for its end. */
export const endedEachSql = (
  s: string,
) => `select fence, task_id, linked, slot_ms as "slotMs", origin, parent_id as "parentId", limit_key as "limitKey", cancelling,
  exists (select from ${s}.follow f where f.upstream_id = gone.task_id) as followed, ${makesRoomSql(s, "gone.task_id")} as "makesRoom" from gone`;

export function finishValues(
  items: (Settlement & { verdict: Extract<Settlement["verdict"], { kind: "ended" }> })[],
): unknown[] {
  const outcomes = items.map(({ verdict }) => outcomeNumbers[verdict.outcome]);
  const { runId, fence, endedIn, sinceMs } = endedColumns(items);
  return [
    runId,
    fence,
    outcomes.some((outcome) => outcome !== 0) ? numbers(outcomes) : null,
    numbers(items.map(({ startedMs }) => (startedMs === null ? null : Math.round(startedMs) - sinceMs))),
    endedIn,
    texts(items.map(({ verdict }) => verdict.result)),
    texts(items.map(({ verdict }) => verdict.error)),
    sinceMs,
  ];
}

/**
 * Back to ready for another try, or to an operator's decision, unless a cancellation was asked for or the task is gone; the
 * try that ended is kept as an attempt. $9: also of tasks whose tries take tokens; the caller books them.
 */
export const retrySql = (s: string) => `
  with i as (
    select * from unnest((select $1::bigint[]), (select $2::bigint[]), (select $3::bigint[]), (select $4::bigint[]),
                         (select $5::bigint[]), (select $6::jsonb[]), (select $8::boolean[]))
      as i (id, fence, due_ms, started_ms, ended_ms, error, ask)
  ), old as materialized (
    select r.id, r.task_id, r.attempt, r.fence, r.session_id, r.claimed_ms, i.due_ms, i.started_ms, i.ended_ms, i.error, i.ask, p.paused, t.group_id
    from ${s}.run r join i on r.id = i.id and r.fence = i.fence join ${s}.plan p on p.task_id = r.task_id
         join ${s}.task t on t.id = r.task_id
    where r.state + 0 = 3 and r.recall <> 1 and t.deleted_ms is null and ($9 or not (${rated})) for update of r
  ), back as (
    update ${s}.run r set state = case when old.ask then 4 when old.paused then 1 else 2 end, group_id = ${unaddressed},
           due_ms = old.due_ms, session_id = null, claimed_ms = null,
           started_ms = null, recall = 0, progress = null
    from old where r.id = old.id returning r.fence, r.state, r.due_ms, r.group_id
  ), told as (
    insert into ${s}.attempt (run_id, attempt, fence, session_id, claimed_ms, started_ms, ended_ms, outcome, error)
    select id, attempt, fence, session_id, claimed_ms, started_ms, ended_ms, $7, error from old
  ), counted as (
    insert into ${s}.tally_delta (task_id, retried) select task_id, count(*) from old group by task_id
  ), told_all as (
    ${notifyReadySql(s, "back where state = 2")}
  ), room as (
    select ${notifySql(s, "'ready ' || min(ended_ms)")} from old where not (${unlimitedGroupSql(s, "group_id")}) having count(*) > 0
  )
  select back.fence, back.state = 1 as aside, (select count(*) from told_all), (select count(*) from room) from back`;

/**
 * Of these, the ones that the store has already applied. The fence alone does not tell: a reaper that took the claim
 * back ended or retried the run under the same fence. But it never says succeeded, it ends runs at its own time, and
 * what it retries it calls lost.
 */
export const settledSql = (s: string) => `
  select i.fence from unnest($1::bigint[], $2::bigint[], $3::text[], $4::smallint[], $5::bigint[]) as i (id, fence, kind, outcome, ended_ms)
  where exists (select from ${s}.run_history h where h.id = i.id and h.fence = i.fence and h.outcome = i.outcome
                and (i.outcome = 0 or h.ended_ms = i.ended_ms))
     or i.kind = 'ended' and i.outcome = 0 and exists (
          select from ${s}.run_trace t where t.ended_ms >= i.ended_ms and i.fence = any(t.fences))
     or i.kind = 'retry' and exists (
          select from ${s}.attempt a where a.run_id = i.id and a.fence = i.fence and a.outcome = 'failed')
     or i.kind = 'released' and exists (select from ${s}.run r where r.id = i.id and r.fence = i.fence and r.state <> 3)
        and not exists (select from ${s}.attempt a where a.run_id = i.id and a.fence = i.fence)`;

export function settledValues(items: Settlement[]): unknown[] {
  return [
    items.map(({ runId }) => runId),
    items.map(({ fence }) => fence),
    items.map(({ verdict }) => verdict.kind),
    // A retry or a release of a run whose cancellation was asked for ends it as cancelled.
    items.map(({ verdict }) => outcomeNumbers[verdict.kind === "ended" ? verdict.outcome : "cancelled"]),
    items.map(({ endedMs }) => Math.round(endedMs)),
  ];
}

/** Repeatable: a verdict is recorded once. */
export const lateSql = (s: string) => `
  insert into ${s}.late_result (run_id, fence, outcome, error, session_id, at_ms)
  select i.run_id, i.fence, i.outcome, i.error, i.session_id, $6
  from unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::jsonb[], $5::bigint[]) as i (run_id, fence, outcome, error, session_id)
  where not exists (select from ${s}.late_result l where l.run_id = i.run_id and l.fence = i.fence and l.outcome = i.outcome)`;
