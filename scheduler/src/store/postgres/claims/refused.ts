import type { Settlement } from "../../../run/claim-store.ts";
import type { Database } from "../database.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { looseEndsOf, tieUp } from "../flow/following.ts";
import { runOutcome, runState } from "../states.ts";
import { isLinked } from "./finish.ts";
import type { Ended } from "./settle.ts";

/**
 * Handles verdicts without a matching claim: either an earlier request whose reply was lost has applied them already, or they are too late.
 * @returns the fences of the verdicts that are too late
 */
export async function refused(
  database: Database,
  sessionId: number,
  missing: Settlement[],
  nowMs: number,
): Promise<Set<number>> {
  const s = database.schema;
  const known = await database.persist(() =>
    database.query<{ fence: number }>("settle-known", settledSql(s), settledValues(missing)),
  );
  const settled = new Set(known.map(({ fence }) => fence));
  // An earlier request whose reply was lost, or the handler's own transaction, applied these verdicts. The work that follows their commit
  // may still be missing, so it is done now.
  const linked = missing.filter(
    (item) => settled.has(item.fence) && item.verdict.kind === "ended" && isLinked(item as Ended),
  );
  if (linked.length > 0) await tieUp(database, await looseEndsOf(database, linked), nowMs);
  const late = missing.filter(({ fence }) => !settled.has(fence));
  await tellLate(database, sessionId, late, nowMs);
  return new Set(late.map(({ fence }) => fence));
}

/** Records verdicts that arrived too late to have an effect. */
export async function tellLate(
  database: Database,
  sessionId: number,
  late: Settlement[],
  nowMs: number,
): Promise<void> {
  // The release of a claim that the worker no longer has reports no work, so it is not recorded.
  const told = late.filter(({ verdict }) => verdict.kind !== "released");
  if (told.length === 0) return;
  const values = [
    told.map(({ runId }) => runId),
    told.map(({ fence }) => fence),
    told.map(({ verdict }) =>
      verdict.kind === "ended" && verdict.outcome === "succeeded" ? runOutcome.succeeded : runOutcome.failed,
    ),
    told.map(({ verdict }) => ("error" in verdict ? verdict.error : null)),
    told.map((item) => item.sessionId ?? sessionId),
    Math.round(nowMs),
  ];
  await database.persist(() => database.query("settle-late", lateSql(database.schema), values));
}

const [chain, child, join] = (["chain", "child", "join"] as const).map(sourceNumber);

/**
 * SQL condition: the recorded end `h` started the follow-up run that the verdict `i` asks for, or none if the verdict asks for none. A
 * run's row does not record this, but the follow-up run exists: a join that waits or was created, or the next run of the chain. `unbegun`
 * records a follow-up run that was not created because the ended run was being cancelled. If the task of the follow-up run was removed,
 * there is no row to find, and the condition is true.
 */
const sameOnwardSql = (s: string) => `(
  select case when i.onward is null then count(*) = 0
              else count(*) filter (where b.source = i.onward and b.task_id = coalesce(i.onward_task, h.task_id)
                                      and b.payload is not distinct from i.onward_payload) > 0
                or count(*) = 0 and exists (select from ${s}.task t where t.id = coalesce(i.onward_task, h.task_id) and t.deleted_ms is not null) end
  from (
    select ${join} as source, task_id, payload from ${s}.gathering where parent_id = h.id
    union all select (h.unbegun->>'source')::smallint, (h.unbegun->>'task')::int, h.unbegun->'payload' where h.unbegun is not null
    ${["run", "run_history"]
      .map(
        (table) => `
    union all select case when source = ${join} then ${join} else ${chain} end, task_id, payload from ${s}.${table}
    where parent_id = h.id and source = ${join}
       or parent_id = any(array[h.id, h.parent_id]) and inputs = array[h.id] and source in (${chain}, ${child})`,
      )
      .join("")}
  ) b)`;

/**
 * SQL: selects the verdicts that the store has already applied. An equal fence is no proof: the reclaim of a lost worker's claims ends or
 * retries runs under the same fence. But a reclaim never records a success, ends runs at its own time and with its own error, and marks its
 * retries as lost. An equal outcome is no proof either: another verdict with this outcome may have ended the claim.
 *
 * `whole` is true for verdicts of remote workers, which a server settles. A success with `whole` must also have the same result and the
 * same follow-up run. Without `whole` the result may differ, because a handler that completed its run in its own transaction may return
 * another value afterwards. A success without a history row is found in `run_trace`, which has no result to compare.
 *
 * A run that ended without success must have the same error or, without `whole`, the same time of the end. With `whole` the time is no
 * proof, because verdicts of two workers may come in the same millisecond. The exception is a retry that the store recorded as a failure,
 * because the run had lost too many workers: its recorded error is not the one in the verdict.
 */
const settledSql = (s: string) => `
  select i.fence from unnest($1::bigint[], $2::bigint[], $3::text[], $4::smallint[], $5::bigint[], $6::jsonb[], $7::jsonb[], $8::boolean[],
                             $9::smallint[], $10::int[], $11::jsonb[])
    as i (id, fence, kind, outcome, ended_ms, error, result, whole, onward, onward_task, onward_payload)
  where exists (select from ${s}.run_history h where h.id = i.id and h.fence = i.fence and (h.outcome = i.outcome or i.kind = 'retry' and h.outcome = ${runOutcome.failed})
                and case when i.outcome <> ${runOutcome.succeeded}
                         then h.error is not distinct from i.error
                           or h.ended_ms = i.ended_ms and (not i.whole or i.kind = 'retry' and h.outcome = ${runOutcome.failed})
                         when i.whole then h.result is not distinct from i.result and ${sameOnwardSql(s)}
                         else true end)
     or i.kind = 'ended' and i.outcome = ${runOutcome.succeeded} and exists (
          select from ${s}.run_trace t where t.ended_ms >= i.ended_ms and i.fence = any(t.fences))
     or (i.kind = 'retry' or i.whole and i.outcome = ${runOutcome.failed}) and exists (
          select from ${s}.attempt a where a.run_id = i.id and a.fence = i.fence and a.outcome in ('failed', 'snoozed')
                                       and (not i.whole or a.error is not distinct from i.error))
     or i.kind = 'released' and exists (select from ${s}.run r where r.id = i.id and r.fence = i.fence and r.state <> ${runState.claimed})
        and not exists (select from ${s}.attempt a where a.run_id = i.id and a.fence = i.fence)`;

function settledValues(items: Settlement[]): unknown[] {
  const onwards = items.map(({ verdict }) => (verdict.kind === "ended" ? verdict.onward : undefined));
  return [
    items.map(({ runId }) => runId),
    items.map(({ fence }) => fence),
    items.map(({ verdict }) => verdict.kind),
    // If a cancellation was requested, a retry or a release ends the run as cancelled. A retry of a run that lost too many workers fails
    // the run.
    items.map(({ verdict }) => runOutcome[verdict.kind === "ended" ? verdict.outcome : "cancelled"]),
    items.map(({ endedMs }) => Math.round(endedMs)),
    items.map(({ verdict }) => ("error" in verdict ? verdict.error : null)),
    items.map(({ verdict }) => (verdict.kind === "ended" ? verdict.result : null)),
    items.map(({ sessionId }) => sessionId !== undefined),
    onwards.map((onward) => (onward ? (onward.kind === "join" ? join : chain) : null)),
    onwards.map((onward) => (onward?.kind === "join" ? onward.taskId : null)),
    onwards.map((onward) => onward?.payload ?? null),
  ];
}

/** SQL: records late verdicts. It can be repeated: equal verdicts on the same claim are recorded only once. */
const lateSql = (s: string) => `
  insert into ${s}.late_result (run_id, fence, outcome, error, session_id, at_ms)
  select distinct i.run_id, i.fence, i.outcome, i.error, i.session_id, $6::bigint
  from unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::jsonb[], $5::bigint[]) as i (run_id, fence, outcome, error, session_id)
  where not exists (select from ${s}.late_result l where l.run_id = i.run_id and l.fence = i.fence and l.outcome = i.outcome
                                                         and l.error is not distinct from i.error)`;
