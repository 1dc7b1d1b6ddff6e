import type { SqlClient } from "../../../base/change.ts";
import type { Settlement } from "../../../run/claim-store.ts";
import { taskOptions } from "../../../task/options.ts";
import { notifyReadySql, notifySql, unaddressed } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { recordSql, retriedKind } from "../events/recording.ts";
import { type Query, queryIn, queryOf } from "../query.ts";
import { runRecall, runState } from "../states.ts";
import { settleGates } from "./gates.ts";
import { groupFreedSql, unlimitedGroupSql } from "./group-limits.ts";
import { bookTokens, rated } from "./retry-tokens.ts";
import { takeUpLeft } from "./set-aside.ts";
import type { Ended } from "./settle.ts";

interface Retried {
  fence: number;
  /** True if the run got the state `paused`, because the statement found its task paused. */
  aside: boolean;
  /** True if the run lost too many workers. It is still claimed, and the caller ends it. */
  givenUp: boolean;
}

/**
 * The results of verdicts that ask for a retry: the fences of the accepted retries (also of runs that are now paused or wait for a
 * decision), and of runs that lost too many workers.
 */
export interface Retries {
  again: ReadonlySet<number>;
  givenUp: ReadonlySet<number>;
}

const noRetries: Retries = { again: new Set(), givenUp: new Set() };

/** SQL condition: one more lost worker brings the run `r` of the task `t` to the task's limit of lost workers. */
export const isGivenUpSql = `r.losses + 1 >= coalesce((t.definition->>'workerLosses')::int, ${taskOptions.workerLosses.usual})`;

/** The error of a run that fails because too many of its workers were lost. */
export const givenUpError = JSON.stringify({
  code: "WORKER_LOST",
  message:
    "the run is taken to be the cause of lost workers, and is given up: as many of its attempts as the task's workerLosses outlived their worker's session",
});

/** Returns the tasks of the linked verdicts, without repetition. The end of a linked run has consequences for other runs or slots. */
export const tasksOf = (items: Settlement[]): number[] => [
  ...new Set(items.filter(({ linked }) => linked).map(({ taskId }) => taskId)),
];

export async function retry(database: Database, settlements: Settlement[], nowMs: number): Promise<Retries> {
  const s = database.schema;
  const wanted = settlements.filter(({ verdict }) => verdict.kind === "retry");
  if (wanted.length === 0) return noRetries;
  const rows = await retryWith(queryOf(database), s, wanted, "failed", false);
  const taken = new Set(rows.map(({ fence }) => fence));
  const left = wanted.filter(({ fence }) => !taken.has(fence));
  // The first statement skips runs whose attempts need tokens of a rate, and runs that must not be retried.
  if (left.length > 0) rows.push(...(await database.transaction((client) => retryBooked(client, s, left, "failed"))));
  const givenUp = new Set(rows.flatMap((row) => (row.givenUp ? [row.fence] : [])));
  const again = new Set(rows.flatMap((row) => (row.givenUp ? [] : [row.fence])));
  const aside = new Set(rows.flatMap((row) => (row.aside ? [row.fence] : [])));
  const paused = wanted.filter(({ fence }) => aside.has(fence)).map(({ taskId }) => taskId);
  if (paused.length > 0) await takeUpLeft(database, { setAside: paused }, nowMs);
  const asked = tasksOf(wanted.filter(({ verdict }) => verdict.kind === "retry" && verdict.ask));
  // Runs that wait for an operator's decision no longer hold slots. If the process crashes before this point, the dispatcher gives the
  // slots out later.
  if (asked.length > 0) await database.transaction((client) => settleGates(client, s, asked, nowMs, true));
  return { again, givenUp };
}

/**
 * Writes retries like `retry`, but in the caller's transaction, and gives out no slots.
 * @returns the fences of the runs that the statement retried or gave up
 */
export async function retryIn(
  client: SqlClient,
  s: string,
  wanted: Settlement[],
  outcome: "failed" | "lost",
): Promise<number[]> {
  return (await retryBooked(client, s, wanted, outcome)).map(({ fence }) => fence);
}

async function retryBooked(
  client: SqlClient,
  s: string,
  wanted: Settlement[],
  outcome: "failed" | "lost",
): Promise<Retried[]> {
  if (wanted.length === 0) return [];
  const done = await retryWith(queryIn(client), s, wanted, outcome, true);
  const fences = new Set(done.map(({ fence }) => fence));
  await bookTokens(
    client,
    s,
    wanted.flatMap(({ runId, fence }) => (fences.has(fence) ? [runId] : [])),
  );
  return done;
}

async function retryWith(
  query: Query,
  s: string,
  wanted: Settlement[],
  outcome: "failed" | "lost",
  tokens: boolean,
): Promise<Retried[]> {
  const rows = await query<Retried>("settle-retry", retrySql(s), [
    wanted.map(({ runId }) => runId),
    wanted.map(({ fence }) => fence),
    wanted.map(({ verdict }) => (verdict.kind === "retry" ? Math.round(verdict.dueMs) : 0)),
    wanted.map(({ startedMs }) => (startedMs === null ? null : Math.round(startedMs))),
    wanted.map(({ endedMs }) => Math.round(endedMs)),
    wanted.map(({ verdict }) => (verdict.kind === "retry" ? verdict.error : null)),
    outcome,
    wanted.map(({ verdict }) => verdict.kind === "retry" && verdict.ask === true),
    tokens,
    wanted.map(({ verdict }) => verdict.kind === "retry" && verdict.lost === true),
    wanted.map(({ verdict }) => verdict.kind === "retry" && verdict.snoozed === true),
  ]);
  return rows.map((row) => ({ ...row, fence: Number(row.fence) }));
}

/**
 * SQL: moves runs back to `ready` for another attempt, to `paused` if their task is paused, or to an operator's decision, unless a
 * cancellation was requested or the task is removed. The ended try is stored as an attempt. $9: true to include runs of tasks whose
 * attempts take tokens; the caller books the tokens. Only this statement counts snoozes and lost workers. A run with too many lost workers
 * stays claimed, so that the caller ends it.
 */
const retrySql = (s: string) => `
  with i as (
    select * from unnest((select $1::bigint[]), (select $2::bigint[]), (select $3::bigint[]), (select $4::bigint[]),
                         (select $5::bigint[]), (select $6::jsonb[]), (select $8::boolean[]), (select $10::boolean[]), (select $11::boolean[]))
      as i (id, fence, due_ms, started_ms, ended_ms, error, ask, lost, snoozed)
  ), old as materialized (
    select r.id, r.task_id, r.attempt, r.fence, r.session_id, r.claimed_ms, r.labels, i.due_ms, i.started_ms, i.ended_ms, i.error, i.ask, i.lost, i.snoozed, p.paused, t.group_id,
           t.definition->'limit'->>'perWorker' is not null as per_worker,
           i.lost and not i.ask and ${isGivenUpSql} as given_up
    from ${s}.run r join i on r.id = i.id and r.fence = i.fence join ${s}.plan p on p.task_id = r.task_id
         join ${s}.task t on t.id = r.task_id
    where r.state + 0 = ${runState.claimed} and r.recall <> ${runRecall.cancel} and t.deleted_ms is null and ($9 or not (${rated})) for update of r
  ), back as (
    update ${s}.run r set state = case when old.ask then ${runState.undecided} when old.paused then ${runState.paused} else ${runState.ready} end, group_id = ${unaddressed},
           due_ms = old.due_ms, session_id = null, claimed_ms = null,
           started_ms = null, recall = ${runRecall.none}, progress = null, losses = r.losses + old.lost::int, snoozes = r.snoozes + old.snoozed::int
    from old where r.id = old.id and not old.given_up returning r.fence, r.state, r.due_ms, r.group_id
  ), told as (
    insert into ${s}.attempt (run_id, attempt, fence, session_id, claimed_ms, started_ms, ended_ms, outcome, error)
    select id, attempt, fence, session_id, claimed_ms, started_ms, ended_ms, case when snoozed then 'snoozed' else $7 end, error from old where not given_up
  ), ${recordSql(s, "old e where not e.given_up and not e.snoozed", retriedKind)}, counted as (
    insert into ${s}.tally_delta (task_id, retried) select task_id, count(*) from old where not given_up and not snoozed group by task_id
  ), told_all as (
    ${notifyReadySql(s, `back where state = ${runState.ready}`)}
  ), room as (
    select ${notifySql(s, "'ready ' || min(ended_ms)")} from old where not given_up and not (${unlimitedGroupSql(s, "group_id")}) having count(*) > 0
  ), freed as (
    ${groupFreedSql(s, "(select array_agg(task_id) from old where not given_up)::int[]", "(select max(ended_ms) from old)", true)}
  ), place as (
    select ${notifySql(s, "'direct ' || min(ended_ms)")} from old where per_worker and not given_up having count(*) > 0
  )
  select old.fence, coalesce(back.state = ${runState.paused}, false) as aside, old.given_up as "givenUp", (select count(*) from told_all), (select count(*) from room), (select count(*) from place)
  from old left join back on back.fence = old.fence`;

/** Converts a verdict that ends its run; also a retry that was not accepted. @returns an empty array for other verdicts */
export function asEnded(item: Settlement, retries: Retries = noRetries): Ended[] {
  if (item.verdict.kind === "ended") return [item as Ended];
  if (item.verdict.kind === "released" || retries.again.has(item.fence)) return [];
  if (retries.givenUp.has(item.fence))
    return [{ ...item, verdict: { kind: "ended", outcome: "failed", result: null, error: givenUpError } }];
  // The statement that ends runs finds only those that `retry` skipped because of a requested cancellation or a removed task.
  return [{ ...item, verdict: { kind: "ended", outcome: "cancelled", result: null, error: item.verdict.error } }];
}

/** Does the same as `asEnded` for many verdicts. */
export function allEnded(items: readonly Settlement[], retries: Retries): Ended[] {
  if (items.every(({ verdict }) => verdict.kind === "ended")) return items as Ended[];
  return items.flatMap((item) => asEnded(item, retries));
}
