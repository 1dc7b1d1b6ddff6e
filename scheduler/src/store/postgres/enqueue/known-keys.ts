import type { SqlClient } from "../../../base/change.ts";
import type { EnqueueWrite } from "../../../run/run-record.ts";
import type { Database } from "../database.ts";

/**
 * Table `known_key`: the run that a key refers to until a given time, even after the run has ended. Only enqueues with `uniqueFor` read
 * and fill this table, and the leader deletes keys whose time is over. Its unique index makes enqueues with the same key wait for each
 * other's transaction.
 */

const forgottenAtOnce = 10_000;

/** Reserves the key. @returns the number of the run that has the key; `held` is true if this enqueue reserved it and must make the run */
export async function holdKey(
  client: SqlClient,
  s: string,
  { taskId, key, runId, uniqueForMs = 0 }: EnqueueWrite,
  nowMs: number,
): Promise<{ runId: number; held: boolean }> {
  for (;;) {
    const { rows } = await client.query(
      `insert into ${s}.known_key as k (task_id, key, run_id, until_ms)
       values ($1, $2, coalesce($3::bigint, nextval('${s}.run_id')), $4::bigint)
       on conflict (task_id, key) do update set run_id = excluded.run_id, until_ms = excluded.until_ms where k.until_ms <= $5
       returning run_id as id`,
      [taskId, key, runId ?? null, Math.round(nowMs) + uniqueForMs, Math.round(nowMs)],
    );
    if (rows[0]) return { runId: Number(rows[0].id), held: true };
    const found = await client.query(`select run_id as id from ${s}.known_key where task_id = $1 and key = $2`, [
      taskId,
      key,
    ]);
    // If there is no row, the leader has just deleted it, and the loop tries again.
    if (found.rows[0]) return { runId: Number(found.rows[0].id), held: false };
  }
}

/** Records the run that already had the key as the run that the key refers to. */
export async function standFor(
  client: SqlClient,
  s: string,
  { taskId, key }: EnqueueWrite,
  runId: number,
): Promise<void> {
  await client.query(`update ${s}.known_key set run_id = $3 where task_id = $1 and key = $2`, [taskId, key, runId]);
}

/** Deletes the keys whose time is over. */
export async function forgetKeys(database: Database, nowMs: number): Promise<void> {
  const s = database.schema;
  for (let gone = forgottenAtOnce; gone === forgottenAtOnce; ) {
    const rows = await database.query(
      "known-keys-forget",
      `delete from ${s}.known_key where ctid = any (array(
         select ctid from ${s}.known_key where until_ms <= $1 limit ${forgottenAtOnce} for update skip locked)) returning true`,
      [Math.round(nowMs)],
    );
    gone = rows.length;
  }
}
