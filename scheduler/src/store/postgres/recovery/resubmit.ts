import type { SqlClient } from "../../../base/change.ts";
import type { ClaimedRun } from "../../../run/claim-store.ts";
import type { EnqueueWrite } from "../../../run/run-record.ts";
import { identityColumns, identityValues } from "../cluster/session-identity.ts";
import { anyInsertSql, anyValues } from "../enqueue/any-enqueue.ts";
import { existing } from "../enqueue/enqueue.ts";
import { insertRunSql } from "../enqueue/new-run.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { queryIn } from "../query.ts";
import { runRecall, runState, slotOutcome } from "../states.ts";
import type { RememberedSession } from "./memory.ts";

/** A claim as the store returned it, and the number of the session that now holds it. */
export interface RememberedClaim {
  readonly run: ClaimedRun;
  readonly sessionId: number;
  readonly claimedMs: number;
}

export interface RememberedEnqueue {
  readonly write: EnqueueWrite;
  readonly runId: number;
  readonly atMs: number;
}

/**
 * Restores the sessions of this process, so that their runs can continue. If the store shows an older session with the same node
 * name as open, the store has lost that session's end by going back in time, so the session is ended again.
 * @returns `backMs`: by how many ms the store went back; `backToMs`: the time to which it went back; null if no live session of
 * this process is in the store
 */
export async function putSessions(
  client: SqlClient,
  s: string,
  sessions: readonly RememberedSession[],
  nowMs: number,
): Promise<{ backMs: number; backToMs: number } | null> {
  let [backMs, backToMs] = [0, Infinity];
  for (const { sessionId, identity, seenMs, beat, ended } of sessions) {
    const { rows } = await client.query(`select seen_ms, ended_ms from ${s}.session where id = $1`, [sessionId]);
    const [row] = rows;
    if (row && !ended) {
      const storeMs = Math.min(seenMs, Number(row.seen_ms));
      backMs = Math.max(backMs, seenMs - storeMs);
      backToMs = Math.min(backToMs, storeMs);
    }
    // Other processes have already seen a higher beat. With a lower one they would treat the session as silent until it reaches that
    // number.
    if (row)
      await client.query(
        `update ${s}.session set beat = greatest(beat, $2), seen_ms = greatest(seen_ms, $3) where id = $1`,
        [sessionId, beat, Math.round(seenMs)],
      );
    if (row || !identity) continue;
    if (!ended)
      await client.query(
        `update ${s}.session set ended_ms = $2, ended_why = 'its end was lost when the store went back'
         where node = $1 and ended_ms is null and id < $3`,
        [identity.node, Math.round(nowMs), sessionId],
      );
    await client.query(
      `insert into ${s}.session (${identityColumns}, id, started_ms, seen_ms, ended_ms, ended_why, beat)
       overriding system value values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, $13, $14, $15) on conflict do nothing`,
      [
        ...identityValues(identity),
        sessionId,
        Math.round(seenMs),
        ended ? Math.round(ended.atMs) : null,
        ended?.why ?? null,
        beat,
      ],
    );
  }
  return backToMs === Infinity ? null : { backMs, backToMs };
}

/** Inserts the runs of enqueues that the store lacks, if it has their tasks. @returns the numbers of the inserted runs */
export async function putEnqueues(
  client: SqlClient,
  s: string,
  enqueues: readonly RememberedEnqueue[],
): Promise<number[]> {
  const [oldest] = enqueues;
  if (!oldest) return [];
  const ids = enqueues.map(({ runId }) => runId);
  const known = await existing(queryIn(client), s, ids, oldest.atMs);
  const parked = await client.query(`select again->>'runId' as id from ${s}.run where again is not null`);
  for (const { id } of parked.rows) known.add(Number(id));
  const missing = enqueues.filter(({ runId }) => !known.has(runId));
  if (missing.length === 0) return [];
  // The statement inserts all runs or none, so a task that the store has lost would prevent the insertion of all other runs.
  const { rows } = await client.query(`select id from ${s}.task where id = any($1) and deleted_ms is null`, [
    [...new Set(missing.map(({ write }) => write.taskId))],
  ]);
  const tasks = new Set(rows.map(({ id }) => Number(id)));
  const wanted = missing.filter(({ write }) => tasks.has(write.taskId));
  if (wanted.length === 0) return [];
  const keys = await keysOf(
    client,
    s,
    wanted.map(({ write }) => write),
  );
  const writes = wanted.map(({ write, runId }, place) => ({ ...write, runId, key: keys[place] ?? null }));
  const numbers = writes.map(({ runId }) => runId);
  await client.query(
    anyInsertSql(s, { keyed: true, here: false, durability: "full" }),
    anyValues(writes, oldest.atMs, numbers),
  );
  return numbers;
}

/*
 * SQL: restores this process's claims. Each claim is valid unless the store has a higher fence for the run, which belongs to a later claim.
 * A run that is missing is inserted again, and its slot is added to the slot table, so that the slot is not planned a second time. The run
 * counts as started, because a process that reclaims it from a lost worker must not assume that it never started.
 */
const claimsSql = (s: string) => `
  with i as (
    select * from unnest($1::bigint[], $2::int[], $3::int[], $4::bigint[], $5::int[], $6::bigint[], $7::bigint[], $8::smallint[], $9::text[], $10::jsonb[],
                         $11::jsonb[], $12::bigint[], $13::bigint[], $14::jsonb[], $16::int[], $17::jsonb[], $18::jsonb[], $19::int[])
      as i (id, task_id, version, fence, attempt, due_ms, slot_ms, priority, key, payload, checkpoint, session_id, claimed_ms, shard, losses, overrides, labels, snoozes)
  ), back as (
    update ${s}.run r set state = ${runState.claimed}, version = i.version, session_id = i.session_id, fence = i.fence, attempt = i.attempt, losses = i.losses, snoozes = i.snoozes,
           claimed_ms = i.claimed_ms, started_ms = i.claimed_ms, recall = ${runRecall.none}, checkpoint = i.checkpoint
    from i where r.id = i.id and coalesce(r.fence, 0) < i.fence returning r.id
  ), made as (
    ${insertRunSql(s, {
      id: "i.id",
      version: "i.version",
      state: `${runState.claimed}`,
      due_ms: "i.due_ms",
      created_ms: "i.claimed_ms",
      priority: "i.priority",
      after_end: "i.slot_ms is not null and p.after_end_ms is not null",
      source: `case when i.slot_ms is null then ${sourceNumber("enqueue")} else ${sourceNumber("slot")} end`,
      key: "i.key",
      payload: "i.payload",
      checkpoint: "i.checkpoint",
      session_id: "i.session_id",
      fence: "i.fence",
      claimed_ms: "i.claimed_ms",
      started_ms: "i.claimed_ms",
      attempt: "i.attempt",
      losses: "i.losses",
      snoozes: "i.snoozes",
      slot_ms: "i.slot_ms",
      overrides: "i.overrides",
      labels: "i.labels",
      shard: "case when i.shard is not null then array(select value::int from jsonb_array_elements_text(i.shard)) end",
    })}
    from i join ${s}.task t on t.id = i.task_id join ${s}.plan p on p.task_id = t.id
    where not exists (select from ${s}.run r where r.id = i.id) and i.id <> all ($15::bigint[])
    on conflict do nothing returning id, task_id, slot_ms, after_end, claimed_ms
  ), booked as (
    insert into ${s}.slot (task_id, slot_ms, outcome, run_id, term, accepted_ms)
    select task_id, slot_ms, ${slotOutcome.run}, id, null, claimed_ms from made where slot_ms is not null
    on conflict do nothing
  ), awaited as (
    update ${s}.plan p set next_slot_ms = null from made where made.after_end and p.task_id = made.task_id
  )
  select id from back union all select id from made`;

/** Restores claims that the store lacks. @returns the numbers of the runs whose claims were restored */
export async function putClaims(client: SqlClient, s: string, claims: readonly RememberedClaim[]): Promise<number[]> {
  const [oldest] = claims;
  if (!oldest) return [];
  const ids = claims.map(({ run }) => run.runId);
  const ended = await existing(queryIn(client), s, ids, oldest.claimedMs, false);
  const there = await client.query(`select id from ${s}.run where id = any($1)`, [ids]);
  const present = new Set(there.rows.map(({ id }) => Number(id)));
  const absent = claims.filter(({ run }) => !present.has(run.runId) && !ended.has(run.runId));
  const keys = await keysOf(
    client,
    s,
    absent.map(({ run }) => run),
  );
  const keyOf = new Map(absent.map(({ run }, place) => [run.runId, keys[place] ?? null]));
  const column = <Value>(of: (claim: RememberedClaim) => Value) => claims.map(of);
  const { rows } = await client.query(claimsSql(s), [
    ids,
    column(({ run }) => run.taskId),
    column(({ run }) => run.version),
    column(({ run }) => run.fence),
    column(({ run }) => run.attempt),
    column(({ run }) => Math.round(run.dueMs)),
    column(({ run }) => run.slotMs),
    column(({ run }) => run.priority),
    column(({ run }) => keyOf.get(run.runId) ?? null),
    column(({ run }) => (run.payload === null ? null : JSON.stringify(run.payload))),
    column(({ run }) => (run.state == null ? null : JSON.stringify(run.state))),
    column(({ sessionId }) => sessionId),
    column(({ claimedMs }) => Math.round(claimedMs)),
    column(({ run }) => (run.shard ? JSON.stringify(run.shard) : null)),
    [...ended],
    column(({ run }) => run.losses ?? 0),
    column(({ run }) => (run.overrides ? JSON.stringify(run.overrides) : null)),
    column(({ run }) => (run.labels ? JSON.stringify(run.labels) : null)),
    column(({ run }) => run.snoozes ?? 0),
  ]);
  return rows.map(({ id }) => Number(id));
}

/**
 * Returns the key with which each of these runs can be inserted again. Another run whose end the store has lost may still have the key.
 * Then the run is inserted without a key, because an accepted run must be executed. If several missing runs share a key, the last one gets
 * it.
 */
async function keysOf(
  client: SqlClient,
  s: string,
  wanted: readonly { taskId: number; key: string | null }[],
): Promise<(string | null)[]> {
  const keyed = wanted.filter(({ key }) => key !== null);
  if (keyed.length === 0) return wanted.map(() => null);
  const { rows } = await client.query(
    `select r.task_id, r.key from ${s}.run r join unnest($1::int[], $2::text[]) as i (task_id, key) on r.task_id = i.task_id and r.key = i.key`,
    [keyed.map(({ taskId }) => taskId), keyed.map(({ key }) => key)],
  );
  const used = new Set(rows.map(({ task_id, key }) => `${task_id} ${key}`));
  const latestFirst = wanted.toReversed().map(({ taskId, key }) => {
    const lane = `${taskId} ${key}`;
    if (key === null || used.has(lane)) return null;
    used.add(lane);
    return key;
  });
  return latestFirst.reverse();
}
