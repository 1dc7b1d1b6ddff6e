import type { Settlement } from "../../../run/claim-store.ts";
import type { Database } from "../database.ts";
import { looseEndsOf, tieUp } from "../flow/following.ts";
import { runOutcome, runState } from "../states.ts";
import { isLinked } from "./finish.ts";
import type { Ended } from "./settle.ts";

/** Verdicts that found no claim of theirs: applied already by a try whose reply was lost, or too late for good. */
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
  // Applied by a try whose reply was lost, or in the handler's own transaction: what comes after the commit is left.
  const linked = missing.filter(
    (item) => settled.has(item.fence) && item.verdict.kind === "ended" && isLinked(item as Ended),
  );
  if (linked.length > 0) await tieUp(database, await looseEndsOf(database, linked), nowMs);
  const late = missing.filter(({ fence }) => !settled.has(fence));
  // One that gives back what is not its own any more says nothing of what was done.
  const told = late.filter(({ verdict }) => verdict.kind !== "released");
  if (told.length > 0) {
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
    await database.persist(() => database.query("settle-late", lateSql(s), values));
  }
  return new Set(late.map(({ fence }) => fence));
}

/**
 * Of these, the ones that the store has already applied. The fence alone does not tell: a reaper that took the claim
 * back ended or retried the run under the same fence. But it never says succeeded, it ends runs at its own time, and
 * what it retries it calls lost.
 */
const settledSql = (s: string) => `
  select i.fence from unnest($1::bigint[], $2::bigint[], $3::text[], $4::smallint[], $5::bigint[]) as i (id, fence, kind, outcome, ended_ms)
  where exists (select from ${s}.run_history h where h.id = i.id and h.fence = i.fence and (h.outcome = i.outcome or i.kind = 'retry' and h.outcome = ${runOutcome.failed})
                and (i.outcome = ${runOutcome.succeeded} or h.ended_ms = i.ended_ms))
     or i.kind = 'ended' and i.outcome = ${runOutcome.succeeded} and exists (
          select from ${s}.run_trace t where t.ended_ms >= i.ended_ms and i.fence = any(t.fences))
     or i.kind = 'retry' and exists (
          select from ${s}.attempt a where a.run_id = i.id and a.fence = i.fence and a.outcome = 'failed')
     or i.kind = 'released' and exists (select from ${s}.run r where r.id = i.id and r.fence = i.fence and r.state <> ${runState.claimed})
        and not exists (select from ${s}.attempt a where a.run_id = i.id and a.fence = i.fence)`;

function settledValues(items: Settlement[]): unknown[] {
  return [
    items.map(({ runId }) => runId),
    items.map(({ fence }) => fence),
    items.map(({ verdict }) => verdict.kind),
    // A retry or a release of a run whose cancellation was asked for ends it as cancelled; a retry of one that lost too many workers fails.
    items.map(({ verdict }) => runOutcome[verdict.kind === "ended" ? verdict.outcome : "cancelled"]),
    items.map(({ endedMs }) => Math.round(endedMs)),
  ];
}

/** Repeatable: a verdict is recorded once. */
const lateSql = (s: string) => `
  insert into ${s}.late_result (run_id, fence, outcome, error, session_id, at_ms)
  select i.run_id, i.fence, i.outcome, i.error, i.session_id, $6
  from unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::jsonb[], $5::bigint[]) as i (run_id, fence, outcome, error, session_id)
  where not exists (select from ${s}.late_result l where l.run_id = i.run_id and l.fence = i.fence and l.outcome = i.outcome)`;
