import type { SqlClient } from "../../../base/change.ts";
import { isCarillonError, messageOf } from "../../../base/errors.ts";
import { type OperationKind, operationTransition } from "../../../run/operations.ts";
import type { Database } from "../database.ts";
import { stepBackfill } from "./backfill.ts";
import { carryOut, countAsked, pickBatch } from "./operation-batches.ts";
import { stepReruns } from "./operation-reruns.ts";
import type { Batch, OpenOperation, OperationContext, Progress } from "./operation-rows.ts";

/** How long a process may take for a batch, in ms, before another process may presume it dead and repeat the batch. */
const batchTurnMs = 5_000;

/** The server ends a step's transaction if it is idle for this long, so that a stalled process does not keep the operation locked. */
const stepIdle = "30s";

export const isBatched = (kind: OperationKind) => kind === "pause" || kind === "resume" || kind === "cancel";

export async function step(
  context: OperationContext,
  nowMs: number,
  operationId?: number,
): Promise<{ stepped: number | null; nextMs: number | null }> {
  const { database, s } = context;
  const now = Math.round(nowMs);
  let open: OpenOperation | undefined;
  try {
    const batch = await database.transaction(async (client) => {
      await client.query(`set local idle_in_transaction_session_timeout = '${stepIdle}'`);
      open = await take(client, s, now, operationId);
      return open && stepIn(context, client, open, now);
    });
    if (open && batch) await settle(database, open.id, batch, await carryOut(context, open, batch, nowMs), now);
  } catch (error) {
    if (!open || isPassing(error)) throw error;
    await breakOff(database, open.id, error, now);
  }
  if (open) return { stepped: open.id, nextMs: now };
  const [next] = await database.query<{ nextMs: number | null }>(
    "operation-next",
    `select min(next_ms) as "nextMs" from ${s}.operation where ended_ms is null and ($1::bigint is null or id = $1)`,
    [operationId ?? null],
  );
  return { stepped: null, nextMs: next?.nextMs ?? null };
}

/** Locks the due operation whose last step is the longest ago. Skips operations that another process has locked for a step. */
async function take(
  client: SqlClient,
  s: string,
  now: number,
  operationId?: number,
): Promise<OpenOperation | undefined> {
  const { rows } = await client.query(
    `select * from ${s}.operation where ended_ms is null and next_ms <= $1 and ($2::bigint is null or id = $2)
     order by stepped_ms, id limit 1 for update skip locked`,
    [now, operationId ?? null],
  );
  return rows[0] as unknown as OpenOperation | undefined;
}

/** Makes one step in the transaction. @returns the batch to process after the commit, if the kind of operation needs one */
async function stepIn(
  context: OperationContext,
  client: SqlClient,
  open: OpenOperation,
  now: number,
): Promise<Batch | undefined> {
  const { s } = context;
  if (!isBatched(open.kind)) {
    const progress = await (open.kind === "backfill"
      ? stepBackfill(context, client, open, now)
      : stepReruns(context, client, open, now));
    await advance(client, s, open, progress, now);
    return undefined;
  }
  const batch = open.batch ?? (await pickBatch(client, s, open));
  if (batch.length === 0) {
    await advance(client, s, open, await countAsked(client, s, open, now), now);
    return undefined;
  }
  // A repeated batch keeps the number in `steps`: if two processes handle it, only the first to finish counts it, and neither waits.
  const steps = open.batch === null ? open.steps + 1 : open.steps;
  await client.query(
    `update ${s}.operation set batch = $2, steps = $3, next_ms = $4, stepped_ms = $5, started_ms = coalesce(started_ms, $5)
     where id = $1`,
    [open.id, JSON.stringify(batch), steps, now + batchTurnMs, now],
  );
  return { items: batch, steps };
}

async function advance(
  client: SqlClient,
  s: string,
  open: OpenOperation,
  progress: Progress,
  now: number,
): Promise<void> {
  const state = operationTransition(open.state, progress.left ? "step" : "nothing left");
  await client.query(
    `update ${s}.operation set done = done + $2, failed = failed + $4, error = coalesce($5, error), cursor = $6, steps = steps + 1,
            passed = case when $8 = 'done' then greatest(passed + $3, total - done - failed - $2 - $4 - $10) else passed + $3 end,
            total = greatest(total, done + passed + failed + $2 + $3 + $4 + $10),
            next_ms = $7, stepped_ms = $9, state = $8, started_ms = coalesce(started_ms, $9),
            ended_ms = case when $8 = 'done' then $9::bigint end
     where id = $1`,
    [
      open.id,
      progress.done,
      progress.passed,
      progress.failed,
      progress.error,
      JSON.stringify(progress.cursor),
      progress.nextMs,
      state,
      now,
      apart(progress),
    ],
  );
}

/** Returns the number of runs that are counted only in the cursor, not in the columns. */
const apart = ({ cursor: { asked = [], late = 0 } }: Progress): number => asked.length + late;

/**
 * Counts a batch once: if another process repeated the batch because it presumed this process dead, the later of the two calls changes
 * nothing, because `steps` has changed.
 */
async function settle(database: Database, id: number, batch: Batch, progress: Progress, now: number): Promise<void> {
  const s = database.schema;
  await database.query(
    "operation-settle",
    `update ${s}.operation set done = done + $3, passed = passed + $4, failed = failed + $5, error = coalesce($6, error), cursor = $7,
            total = greatest(total, done + passed + failed + $3 + $4 + $5 + $9), batch = null, steps = steps + 1, next_ms = $8,
            state = case state when 'stopping' then 'stopped' else state end,
            ended_ms = case state when 'stopping' then $8::bigint end
     where id = $1 and steps = $2`,
    [
      id,
      batch.steps,
      progress.done,
      progress.passed,
      progress.failed,
      progress.error,
      JSON.stringify(progress.cursor),
      now,
      apart(progress),
    ],
  );
}

async function breakOff(database: Database, id: number, error: unknown, now: number): Promise<void> {
  const s = database.schema;
  const text = isCarillonError(error) ? `${error.code}: ${error.message}` : messageOf(error);
  database.log.error({ operation: id, error: text }, "an operation was broken off");
  await database.query(
    "operation-break",
    `update ${s}.operation set state = 'failed', error = $2, ended_ms = $3 where id = $1 and ended_ms is null`,
    [id, text, now],
  );
}

/** Returns true if another try may succeed after the error, as when the store is unavailable or two transactions conflict. */
function isPassing(error: unknown): boolean {
  if (isCarillonError(error)) return error.code.startsWith("STORE_");
  return /^(?:40|55|57)/.test((error as { code?: string }).code ?? "");
}
