import type { SqlClient } from "../../../base/change.ts";
import type { EnqueueWrite } from "../../../run/run-record.ts";
import { lockPlans, settleGates } from "../claims/gates.ts";
import { endUnclaimedSql } from "../runs/unclaimed-ends.ts";
import { runOutcome, unbegun } from "../states.ts";

const why = "replaced by a newer enqueue with its key";

/** Returns true if the run is live and can no longer be replaced, because it has started or has had an attempt. */
export async function hasBegun(client: SqlClient, s: string, runId: number): Promise<boolean> {
  const { rows } = await client.query(`select from ${s}.run r where r.id = $1 and not (${unbegun})`, [runId]);
  return rows.length > 0;
}

/** A run that was replaced. `sinceMs`: the time of the first enqueue in the chain of runs that replaced each other. */
export interface Replaced {
  runId: number;
  sinceMs: number;
}

/** Ends the run with this key as skipped, if it waits and has had no attempt. @returns undefined if there is no such run */
export async function endWaiting(
  client: SqlClient,
  s: string,
  { taskId, key }: Pick<EnqueueWrite, "taskId" | "key">,
  nowMs: number,
): Promise<Replaced | undefined> {
  await lockPlans(client, s, [taskId]);
  const { rows } = await client.query(
    endUnclaimedSql(s, {
      which: `where r.task_id = $1 and r.key = $2 and ${unbegun}`,
      outcome: runOutcome.skipped,
      why: `'${why}'`,
      now: "$3",
      answer: "id, gate, coalesce(since_ms, created_ms) as since_ms",
    }),
    [taskId, key, Math.round(nowMs)],
  );
  const [gone] = rows;
  if (gone === undefined) return undefined;
  if ((gone.gate as number) > 0) await settleGates(client, s, [taskId], nowMs, true);
  return { runId: Number(gone.id), sinceMs: Number(gone.since_ms) };
}

/** Stores the time of the first enqueue that a run replaces, which `maxWait` needs to limit how long the run is postponed. */
export async function standSince(client: SqlClient, s: string, runId: number, sinceMs: number): Promise<void> {
  await client.query(`update ${s}.run set since_ms = $2 where id = $1`, [runId, Math.round(sinceMs)]);
}
