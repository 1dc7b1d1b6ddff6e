import type { ClaimedRun, ClaimStore, RoomElsewhere } from "../../../run/claim-store.ts";
import { firstOfEach } from "../../../run/first-of-each.ts";
import type { Database } from "../database.ts";
import { runRecall, runState, takesRuns } from "../states.ts";
import { claimedFields } from "./claimed-columns.ts";
import { makesRoomSql } from "./group-limits.ts";
import { byNumber } from "./settle.ts";

/**
 * SQL: the fields of a session's existing claims. A claim joins the run with its task's plan; this statement uses subqueries instead.
 */
const heldFields = (s: string) =>
  `${claimedFields(
    `exists (select from ${s}.plan p where p.task_id = r.task_id and p.followed) or ${makesRoomSql(s, "r.task_id")}`,
  )}, r.claimed_ms as "claimedMs"`;

export async function heldBy(database: Database, sessionId: number): Promise<ClaimedRun[]> {
  const s = database.schema;
  return database.query<ClaimedRun>(
    "claim-held",
    `select ${heldFields(s)} from ${s}.run r where r.session_id = $1 and r.state = ${runState.claimed}`,
    [sessionId],
  );
}

export async function adopt(database: Database, oldSessionId: number, newSessionId: number): Promise<ClaimedRun[]> {
  const s = database.schema;
  return database.query<ClaimedRun>(
    "claim-adopt",
    `update ${s}.run r set session_id = $2 where r.session_id = $1 and r.state = ${runState.claimed} returning ${heldFields(s)}`,
    [oldSessionId, newSessionId],
  );
}

type Recall = Awaited<ReturnType<ClaimStore["recalls"]>>[number];

export async function recalls(database: Database, sessionId: number): Promise<Recall[]> {
  const s = database.schema;
  return database.query<Recall>(
    "claim-recalls",
    `select id as "runId", fence, case recall when ${runRecall.cancel} then 'cancel' else 'withdraw' end as kind, coalesce(recall_why, '') as why
         from ${s}.run where session_id = $1 and state = ${runState.claimed} and recall > ${runRecall.none}`,
    [sessionId],
  );
}

type Report = Parameters<ClaimStore["report"]>[1][number];

export async function report(database: Database, sessionId: number, given: Report[]): Promise<Set<number>> {
  const s = database.schema;
  const { first: reports } = firstOfEach(byNumber(given));
  const standing = await database.query<{ fence: number }>(
    "claim-report",
    `update ${s}.run r set started_ms = i.started_ms, progress = coalesce(i.progress, r.progress),
                recall = case when r.recall = ${runRecall.withdraw} then ${runRecall.none} else r.recall end
         from unnest((select $2::bigint[]), (select $3::bigint[]), (select $4::bigint[]), (select $5::jsonb[]))
              as i (id, fence, started_ms, progress)
         where r.id = i.id and r.fence = i.fence and r.state + 0 = ${runState.claimed} and r.session_id = $1
         returning r.fence`,
    [
      sessionId,
      reports.map(({ runId }) => runId),
      reports.map(({ fence }) => fence),
      reports.map(({ startedMs }) => Math.round(startedMs)),
      reports.map(({ progress }) => progress),
    ],
  );
  return new Set(standing.map(({ fence }) => fence));
}

/** The most sessions of other workers that one query reads, chosen at random. */
const sessionsMost = 32;

/**
 * SQL: free slots of other workers for runs of the tasks $2, by the store's records: each run that a session has claimed counts, even if it
 * has not started. Only tasks of the requesting session's groups ($1) count. Routed tasks are left out, because their runs are addressed.
 * The claims of a session are counted through an index, and only up to its capacity.
 */
const roomSql = (s: string) => `
  with asked as materialized (
    select t.id, coalesce(t.of_name, t.name) as name, g.name as group_name from unnest((select $2::int[])) as i (id)
    join ${s}.task t on t.id = i.id join ${s}.worker_group g on g.id = t.group_id
    where not t.routed and g.name = any ((select groups from ${s}.session where id = $1)::text[])
  ), others as materialized (
    select o.id, coalesce(o.capacity, 1) as capacity,
           array(select a.id from asked a where a.group_name = any (o.groups) and (o.tasks is null or a.name = any (o.tasks))) as task_ids
    from ${s}.session o where ${takesRuns} and o.id <> $1 and o.still_ms is null and coalesce(o.capacity, 1) > 0
    order by random() limit ${sessionsMost}
  )
  select o.capacity - c.held as places, o.task_ids as "taskIds" from others o
  cross join lateral (select count(*)::int as held from (
    select from ${s}.run r where r.session_id = o.id and r.state = ${runState.claimed} limit o.capacity) x) c
  where o.task_ids <> '{}' and c.held < o.capacity order by o.id`;

export function roomElsewhere(database: Database, sessionId: number, taskIds: number[]): Promise<RoomElsewhere[]> {
  return database.query<RoomElsewhere>("room-elsewhere", roomSql(database.schema), [sessionId, taskIds]);
}
