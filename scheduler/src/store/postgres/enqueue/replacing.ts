import type { SqlClient } from "../../../base/change.ts";
import type { Enqueued, EnqueueWrite } from "../../../run/run-record.ts";
import { lockPlans, settleGates } from "../claims/gates.ts";
import type { Database } from "../database.ts";
import { queryIn, queryOf } from "../query.ts";
import { endUnclaimedSql } from "../runs/unclaimed-ends.ts";
import { runOutcome, runState } from "../states.ts";

const why = "replaced by a newer enqueue with its key";

const waits = `r.attempt = 0 and r.state in (${runState.held}, ${runState.paused}, ${runState.ready})`;

/** True for a live run that cannot be replaced any more. */
export async function hasBegun(client: SqlClient, s: string, runId: number): Promise<boolean> {
  const { rows } = await client.query(`select from ${s}.run r where r.id = $1 and not (${waits})`, [runId]);
  return rows.length > 0;
}

/** Ends the run that has the key, if it waits and has not had a try. @returns its number; undefined: no run with the key waits */
export async function endWaiting(
  client: SqlClient,
  s: string,
  { taskId, key }: Pick<EnqueueWrite, "taskId" | "key">,
  nowMs: number,
): Promise<number | undefined> {
  await lockPlans(client, s, [taskId]);
  const { rows } = await client.query(
    endUnclaimedSql(s, {
      which: `where r.task_id = $1 and r.key = $2 and ${waits}`,
      outcome: runOutcome.skipped,
      why: `'${why}'`,
      now: "$3",
      answer: "id, gate",
    }),
    [taskId, key, Math.round(nowMs)],
  );
  const [gone] = rows;
  if (gone === undefined) return undefined;
  if ((gone.gate as number) > 0) await settleGates(client, s, [taskId], nowMs, true);
  return Number(gone.id);
}

export interface Replacing {
  database: Database;
  /** A number for the new run. */
  draw: (signal: AbortSignal | undefined) => Promise<number>;
  enqueueIn: (client: SqlClient, write: EnqueueWrite, nowMs: number) => Promise<Enqueued>;
  /** Runs among these that exist, or with `live` false have ended. */
  existing: (query: ReturnType<typeof queryOf>, ids: number[], nowMs: number, live: boolean) => Promise<Set<number>>;
  endedMeanwhile: () => Error;
  remember: (write: EnqueueWrite, made: Enqueued, nowMs: number) => void;
}

/** Enqueues one run that replaces the waiting run of its key, in a transaction of its own. The run is made once, also if a reply is lost. */
export async function enqueueReplacing(
  { database, draw, enqueueIn, existing, endedMeanwhile, remember }: Replacing,
  write: EnqueueWrite,
  nowMs: number,
  signal: AbortSignal | undefined,
): Promise<Enqueued> {
  const runId = write.runId ?? (await draw(signal));
  return database.persist(async (repeats) => {
    const again = repeats || write.runId !== undefined;
    // The reply to an earlier try may have been lost after its commit; its run stands.
    if (again && (await existing(queryOf(database), [runId], nowMs, true)).has(runId)) return { runId, created: true };
    const made = await database.transaction(async (client) => {
      const one = await enqueueIn(client, { ...write, runId }, nowMs);
      // The earlier try may have been committed since, and its run may have ended.
      if (again && (await existing(queryIn(client), [runId], nowMs, false)).size > 0) throw endedMeanwhile();
      return one.runId === runId ? { ...one, created: true } : one;
    });
    remember(write, made, nowMs);
    return made;
  }, signal);
}
