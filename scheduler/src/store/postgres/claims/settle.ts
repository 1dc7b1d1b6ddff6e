import type { Settlement } from "../../../run/claim-store.ts";
import { numbers, texts } from "../columns.ts";
import { againSql, followAgainSql } from "../enqueue/again.ts";
import { inheritedColumns } from "../enqueue/run-rows.ts";
import { recordSql } from "../events/recording.ts";
import { heardSql, hearSql } from "../runs/awaited.ts";
import { runOutcome, runRecall, runState } from "../states.ts";
import { readyMsSql } from "./claimed-columns.ts";
import { makesRoomSql } from "./group-limits.ts";

/**
 * Sorts items by run number. Statements that write many runs write them in this order, so that no two of them deadlock. Runs of a backlog
 * mostly arrive in this order already.
 */
export function byNumber<Item extends { readonly runId: number }>(given: Item[]): Item[] {
  const rises = given.every(({ runId }, i) => i === 0 || runId >= (given[i - 1] as Item).runId);
  return rises ? given : given.toSorted((a, b) => a.runId - b.runId);
}

/** A verdict that ends its run. */
export type Ended = Settlement & { verdict: Extract<Settlement["verdict"], { kind: "ended" }> };

/** SQL condition: `r` is the run of a verdict `i`, and the verdict's claim is still valid. */
const standing = `r.id = i.id and r.fence = i.fence and r.state + 0 = ${runState.claimed}`;

/**
 * SQL condition: no task follows the task of run `r`. A following task may have been defined after the claim. The first half is evaluated
 * once per statement; the second is a subquery for each run, because a join could change the plan.
 */
const unfollowed = (s: string) =>
  `(not exists (select from ${s}.follow) or not exists (select from ${s}.follow f where f.upstream_id = r.task_id))`;

/*
 * Ends many runs in one statement: deletes each from the live table if the run still has the verdict's fence, inserts it into the history,
 * and inserts one counter row per task. It seldom waits for a lock, because the runs belong to this worker, and history rows and counter
 * rows are only inserted. Compared with a separate INSERT it saves a round trip and a commit.
 *
 * `more`: further CTEs. `answer`: the result columns, from `gone`. The default is one row for all ends, and then the statement leaves out
 * runs of followed tasks. `kept`: false if successful runs leave no row; see `unkept` below.
 *
 * The condition is `state + 0 = 3` and not `state = 3`, here and wherever claims are given by their numbers: with statistics from a moment
 * without claims, the planner would take the index of claims for the smallest and compare every claim with every verdict (400 ms for 350 of
 * them). The arrays are in a subselect, so that the planner does not know their length: for 2,000 verdicts on 100,000 runs it would read
 * all runs instead of using the key.
 */
export const finishSql = (s: string, more = "", answer = endedSql, kept = true) => `
  with i as (
    select id, fence, coalesce(outcome, ${runOutcome.succeeded}::smallint) as outcome, started_in + $8::bigint as started_ms, ended_in + $8::bigint as ended_ms, result, error
    from unnest((select $1::bigint[]), (select $2::bigint[]), (select $3::smallint[]), (select $4::bigint[]),
                (select $5::bigint[]), (select $6::jsonb[]), (select $7::jsonb[])) as i (id, fence, outcome, started_in, ended_in, result, error)
  ), gone as (
    delete from ${s}.run r using i where ${standing}${answer === endedSql ? ` and ${unfollowed(s)}` : ""}
    returning r.id, r.due_ms, ${readyMsSql} as ready_ms, r.slot_ms, r.fence, r.session_id, r.claimed_ms, r.created_ms, i.started_ms, i.ended_ms, r.task_id,
              r.version, r.attempt, i.outcome, r.priority, r.source, r.key, r.payload, r.parent_id, r.inputs, r.limit_key, r.shard, r.origin, r.overrides, r.expires_ms, r.labels, r.again, i.result, i.error,
              r.recall = ${runRecall.cancel} as cancelling, r.gate > 0 or r.after_end as linked
  ), told as (
    insert into ${s}.run_history (id, due_ms, ready_ms, slot_ms, fence, session_id, claimed_ms, created_ms, started_ms, ended_ms, task_id,
                                  version, attempt, outcome, priority, source, key, payload, result, error, ${inheritedColumns})
    select id, due_ms, ready_ms, slot_ms, fence, session_id, claimed_ms, created_ms, started_ms, ended_ms, task_id, version, attempt, outcome,
           priority, source, key, payload, result, error, ${inheritedColumns} from gone${kept ? "" : unkept(s)}
  ), counted as (
    insert into ${s}.tally_delta (task_id, succeeded, failed, cancelled)
    select task_id, count(*) filter (where outcome = ${runOutcome.succeeded}), count(*) filter (where outcome = ${runOutcome.failed}), count(*) filter (where outcome = ${runOutcome.cancelled})
    from gone group by task_id
  )${more}, ${followAgainSql(s)}, ${hearSql(s)}, ${recordSql(s, "gone e", "e.outcome")}
  ${answer}`;

/**
 * SQL: a single row about all runs that the statement ended. `ended`: their number. `fences`: their fences; null if all verdicts ended
 * their runs, or none did. `linked`: the tasks among them that have a concurrency limit or plan from a run's end; null if there is none.
 * The last two columns make PostgreSQL execute the CTEs that send signals.
 */
const endedSql = `select count(*) as ended, array_agg(fence) filter (where (select count(*) from gone) < cardinality($1::bigint[])) as fences,
    array_agg(distinct task_id) filter (where linked) as linked, ${againSql}, ${heardSql} from gone`;

export interface EndedTogether {
  ended: number;
  fences: number[] | null;
  linked: number[] | null;
}

/** Returns the fences of the runs that ended, from the row of `endedSql`. If all runs of `asked` ended, the row does not list them. */
export function fencesOf(told: EndedTogether | undefined, asked: readonly Settlement[]): number[] {
  return told?.ended === asked.length ? asked.map(({ fence }) => fence) : (told?.fences ?? []);
}

/*
 * SQL: the end of the history CTE if successes are not kept, and the CTE `traced`. Only child runs, runs with inputs and runs of followed
 * tasks get a history row, because other runs read it. The trace records all ended runs, so that a repeated verdict whose first reply
 * was lost is recognised.
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
 * SQL: ends successful runs that leave no history row. It does the same as `finishSql` for such runs, and is a sixth faster, because it has
 * no columns of a history row. Successful runs whose rows other runs read are left to `finishSql`.
 *
 * $1 run numbers, $2 fences, $3 times of the ends relative to $4, in ms
 */
export const leaveSql = (s: string) => `
  with i as (
    select id, fence, ended_in + $4::bigint as ended_ms
    from unnest((select $1::bigint[]), (select $2::bigint[]), (select $3::bigint[])) as i (id, fence, ended_in)
  ), gone as (
    delete from ${s}.run r using i where ${standing} and not ${readByOthers(s, "r")}
    returning r.fence, r.id, r.task_id, r.attempt, r.key, r.labels, r.again, i.ended_ms, r.gate > 0 or r.after_end as linked
  ), ${tracedSql(s)}
  ), counted as (
    insert into ${s}.tally_delta (task_id, succeeded) select task_id, count(*) from gone group by task_id
  ), ${followAgainSql(s)}, ${hearSql(s)}, ${recordSql(s, "gone e", runOutcome.succeeded)}
  ${endedSql}`;

export function leaveValues(items: readonly Settlement[]): unknown[] {
  const { runId, fence, endedIn, sinceMs } = endedColumns(items);
  return [runId, fence, endedIn, sinceMs];
}

/** Times are sent relative to the first run's end, because most of the work was writing and reading the digits of full numbers. */
function endedColumns(items: readonly Settlement[]) {
  const sinceMs = Math.round(items[0]?.endedMs ?? 0);
  return {
    sinceMs,
    runId: numbers(items.map(({ runId }) => runId)),
    fence: numbers(items.map(({ fence }) => fence)),
    endedIn: numbers(items.map(({ endedMs }) => Math.round(endedMs) - sinceMs)),
  };
}

/**
 * SQL: one row for each ended run, with the columns that `follow` needs, and whether other runs may wait for the run's slot in its group.
 */
export const endedEachSql = (
  s: string,
) => `select fence, task_id, linked, slot_ms as "slotMs", origin, parent_id as "parentId", limit_key as "limitKey", again, cancelling,
  exists (select from ${s}.follow f where f.upstream_id = gone.task_id) as followed, ${makesRoomSql(s, "gone.task_id")} as "makesRoom", ${againSql}, ${heardSql} from gone`;

/**
 * SQL: one row for all ends, as `endedSql`, and in it the rows of `endedEachSql` only for runs whose end another run may wait for. The
 * subqueries look up each task once, so their cost depends on the ended runs and not on the number of tasks that are followed or limited.
 */
export const endedLinkedSql = (
  s: string,
) => `select count(*) as ended, array_agg(fence) filter (where (select count(*) from gone) < cardinality($1::bigint[])) as fences,
    array_agg(distinct task_id) filter (where linked) as linked,
    json_agg(json_build_object('fence', fence, 'task_id', task_id, 'slotMs', slot_ms, 'origin', origin, 'parentId', parent_id, 'limitKey', limit_key,
      'again', again, 'cancelling', cancelling, 'followed', followed, 'makesRoom', makes_room)) filter (where parent_id is not null or followed or makes_room) as awaited,
    ${againSql}, ${heardSql}
  from (select *,
      task_id in (select t.task_id from (select distinct task_id from gone) t where exists (select from ${s}.follow f where f.upstream_id = t.task_id)) as followed,
      task_id in (select t.task_id from (select distinct task_id from gone) t where ${makesRoomSql(s, "t.task_id")}) as makes_room from gone) g`;

export function finishValues(items: Ended[]): unknown[] {
  const outcomes = items.map(({ verdict }) => runOutcome[verdict.outcome]);
  const { runId, fence, endedIn, sinceMs } = endedColumns(items);
  return [
    runId,
    fence,
    outcomes.some((outcome) => outcome !== runOutcome.succeeded) ? numbers(outcomes) : null,
    numbers(items.map(({ startedMs }) => (startedMs === null ? null : Math.round(startedMs) - sinceMs))),
    endedIn,
    texts(items.map(({ verdict }) => verdict.result)),
    texts(items.map(({ verdict }) => verdict.error)),
    sinceMs,
  ];
}
