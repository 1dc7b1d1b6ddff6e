import { CarillonError, isCarillonError, messageOf } from "../errors.ts";
import {
  checkRequest,
  type OperationKind,
  type OperationRecord,
  type OperationRequest,
  type OperationStore,
  operationTransition,
  operationUnknown,
} from "../operations.ts";
import type { RunStore, SqlClient, TaskStore } from "../store.ts";
import { audited } from "./audit.ts";
import { backfillSteps } from "./backfill.ts";
import type { Database } from "./database.ts";
import { endedMeanwhile, existing, unlessTaken } from "./enqueue.ts";
import { type Batch, batchSteps, type OpenOperation, type Progress, runSteps } from "./operation-steps.ts";
import { queryIn } from "./query.ts";
import { RunIds } from "./run-ids.ts";
import { notifySql } from "./signals.ts";

/** Whoever takes a batch has this long before another may think it dead and repeat the batch. */
const batchTurnMs = 5_000;
/** A process that stops in the middle of a step holds the operation for no longer. */
const stepIdle = "30s";
const previewMax = 20;

export interface OperationRow extends OpenOperation {
  author: string;
  total: number;
  done: number;
  passed: number;
  failed: number;
  error: string | null;
  started_ms: number | null;
  ended_ms: number | null;
}

export const asOperation = (row: OperationRow): OperationRecord => ({
  operationId: row.id,
  kind: row.kind,
  filter: row.filter,
  ...(row.range === null ? {} : { range: row.range }),
  author: row.author,
  reason: row.reason,
  state: row.state,
  total: row.total,
  done: row.done,
  passed: row.passed,
  failed: row.failed,
  error: row.error,
  createdMs: row.created_ms,
  startedMs: row.started_ms,
  endedMs: row.ended_ms,
});

/**
 * A step is one transaction under the operation's row: what it does, the place that it leads to and the counts commit
 * together, so whoever steps next goes on exactly there. Acts that are transactions of their own (a pause, a cancellation)
 * are taken as a batch first, which is written down; they can be done twice, and are counted once by the row's `steps`.
 */
export function operationStore(database: Database, tasks: TaskStore, runs: RunStore): OperationStore {
  const s = database.schema;
  const made = runSteps(database, runs);
  const runIds = new RunIds(database);
  const batched = batchSteps(database, tasks, runs);
  const backfill = backfillSteps(database, tasks, runs);
  const isBatched = (kind: OperationKind) => kind === "pause" || kind === "resume" || kind === "cancel";
  const counted = (request: OperationRequest, nowMs: number, show: number) => {
    if (request.kind === "backfill") return backfill.preview(request, nowMs, show);
    return isBatched(request.kind) ? batched.preview(request, show) : made.preview(request, nowMs, show);
  };

  return {
    async preview(request, nowMs, show) {
      await check(request);
      return counted(request, nowMs, Math.min(show, previewMax));
    },

    async begin(request, token, nowMs) {
      await check(request);
      const { total } = await counted(request, nowMs, 0);
      const now = Math.round(nowMs);
      return database.persist(async () => {
        const [row] = await database.query<{ id: number }>(
          "operation-begin",
          `with made as (
             insert into ${s}.operation (token, kind, filter, range, author, reason, total, last_run_id, next_ms, stepped_ms, created_ms)
             select $1, $2, $3, $4, $5, $6, $7, last_value, $8, $8, $8 from ${s}.run_id
             on conflict (token) do nothing returning id),
           put_down as (
             insert into ${s}.audit (at_ms, who, act, about, named, after, why)
             select $8, $5, $2, 'operation', id::text, jsonb_build_object('filter', $3::jsonb, 'range', $4::jsonb, 'total', $7::bigint), $6 from made),
           told as (select ${notifySql(s, "'operations'")} from made)
           select id, (select count(*) from told) from made union all select id, 0 from ${s}.operation where token = $1`,
          [
            token,
            request.kind,
            JSON.stringify(request.filter),
            request.range ? JSON.stringify(request.range) : null,
            request.author,
            request.reason,
            total,
            now,
          ],
        );
        if (row) return row.id;
        // Another process began it between this statement's snapshot and its insert.
        const [other] = await database.query<{ id: number }>(
          "operation-begun",
          `select id from ${s}.operation where token = $1`,
          [token],
        );
        if (!other) throw new Error("an operation that was just written is not there");
        return other.id;
      });
    },

    async step(nowMs, operationId) {
      const now = Math.round(nowMs);
      let open: OpenOperation | undefined;
      try {
        const batch = await database.transaction(async (client) => {
          await client.query(`set local idle_in_transaction_session_timeout = '${stepIdle}'`);
          open = await take(client, now, operationId);
          return open && stepIn(client, open, now);
        });
        if (open && batch) await settle(open.id, batch, await batched.carryOut(open, batch, nowMs), now);
      } catch (error) {
        if (!open || isPassing(error)) throw error;
        await breakOff(open.id, error, now);
      }
      if (open) return { stepped: open.id, nextMs: now };
      const [next] = await database.query<{ nextMs: number | null }>(
        "operation-next",
        `select min(next_ms) as "nextMs" from ${s}.operation where ended_ms is null and ($1::bigint is null or id = $1)`,
        [operationId ?? null],
      );
      return { stepped: null, nextMs: next?.nextMs ?? null };
    },

    async rerun(runId, change, drawn) {
      const now = Math.round(change.nowMs);
      const number = drawn ?? ((await runIds.take(1))[0] as number);
      return database.persist((repeats) =>
        database.transaction(async (client) => {
          // An earlier try may have made it, and be committed at any moment of this one.
          const known = repeats || drawn !== undefined;
          const query = queryIn(client);
          if (known && (await existing(query, s, [number], now)).size > 0) return { runId: number, created: true };
          const run = await made.one(client, runId, number, now).catch((error) => {
            unlessTaken(error, known);
            throw error;
          });
          if (known && (await existing(query, s, [number], now, false)).size > 0) throw endedMeanwhile();
          if (run.runId === number && !run.created) return { runId: number, created: true };
          if (run.created) {
            await audited(client, s, {
              ...{ atMs: now, who: change.author, act: "rerun", about: "run", named: String(runId) },
              ...{ before: null, after: { run: run.runId }, why: change.reason },
            });
          }
          return run;
        }),
      );
    },

    async stop(operationId, nowMs, by) {
      const now = Math.round(nowMs);
      return database.persist(() =>
        database.transaction(async (client) => {
          const { rows } = await client.query(`select state, batch from ${s}.operation where id = $1 for update`, [
            operationId,
          ]);
          const row = rows[0] as Pick<OpenOperation, "state" | "batch"> | undefined;
          if (!row) throw operationUnknown(operationId);
          if (row.state === "stopping" || row.state === "stopped") return row.state;
          const state = operationTransition(row.state, row.batch === null ? "stop" : "stop amid a batch");
          if (state === undefined) {
            throw new CarillonError("OPERATION_STATE", `operation ${operationId} has ended (${row.state})`, {
              hint: `See what it did: carillon operations show ${operationId}.`,
            });
          }
          // One that waited for the store was asked for before the last steps were made.
          await client.query(
            `update ${s}.operation set state = $2, ended_ms = case when $2 = 'stopped' then greatest($3::bigint, stepped_ms) end, next_ms = $3 where id = $1`,
            [operationId, state, now],
          );
          await client.query(`select ${notifySql(s, "'operations'")}`);
          if (by) {
            await audited(client, s, {
              ...{ atMs: now, who: by.author, act: "stop", about: "operation", named: String(operationId) },
              ...{ before: { state: row.state }, after: { state }, why: by.reason },
            });
          }
          return state;
        }),
      );
    },

    async find(operationId) {
      const [row] = await database.query<OperationRow>("operation-find", `select * from ${s}.operation where id = $1`, [
        operationId,
      ]);
      if (!row) throw operationUnknown(operationId);
      return asOperation(row);
    },

    async list(limit) {
      const rows = await database.query<OperationRow>(
        "operation-list",
        `select * from ${s}.operation order by id desc limit $1`,
        [limit],
      );
      return rows.map(asOperation);
    },
  };

  async function check(request: OperationRequest): Promise<void> {
    checkRequest(request);
    const { task } = request.filter;
    if (task === undefined) return;
    // Letters outlive their task.
    if (request.kind !== "dismiss") await tasks.byName(task);
  }

  /** The one that waited longest for its turn; one that another process is stepping is passed over. */
  async function take(client: SqlClient, now: number, operationId?: number): Promise<OpenOperation | undefined> {
    const { rows } = await client.query(
      `select * from ${s}.operation where ended_ms is null and next_ms <= $1 and ($2::bigint is null or id = $2)
       order by stepped_ms, id limit 1 for update skip locked`,
      [now, operationId ?? null],
    );
    return rows[0] as unknown as OpenOperation | undefined;
  }

  /** @returns the batch to carry out after the commit, if that is how it goes on */
  async function stepIn(client: SqlClient, open: OpenOperation, now: number): Promise<Batch | undefined> {
    if (!isBatched(open.kind)) {
      const progress = await (open.kind === "backfill" ? backfill : made).step(client, open, now);
      await advance(client, open, progress, now);
      return undefined;
    }
    const batch = open.batch ?? (await batched.pick(client, open));
    if (batch.length === 0) {
      const nothing = { done: 0, passed: 0, failed: 0, error: null, nextMs: now };
      await advance(client, open, { ...nothing, cursor: open.cursor, left: false }, now);
      return undefined;
    }
    // A batch that is repeated keeps its number: of two who carry it out the first to end counts it, and neither waits.
    const steps = open.batch === null ? open.steps + 1 : open.steps;
    await client.query(
      `update ${s}.operation set batch = $2, steps = $3, next_ms = $4, stepped_ms = $5, started_ms = coalesce(started_ms, $5)
       where id = $1`,
      [open.id, JSON.stringify(batch), steps, now + batchTurnMs, now],
    );
    return { items: batch, steps };
  }

  async function advance(client: SqlClient, open: OpenOperation, progress: Progress, now: number): Promise<void> {
    const state = operationTransition(open.state, progress.left ? "step" : "nothing left");
    await client.query(
      `update ${s}.operation set done = done + $2, failed = failed + $4, error = coalesce($5, error), cursor = $6, steps = steps + 1,
              passed = case when $8 = 'done' then greatest(passed + $3, total - done - failed - $2 - $4) else passed + $3 end,
              total = greatest(total, done + passed + failed + $2 + $3 + $4),
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
      ],
    );
  }

  /** Counts a batch once: whoever repeated it, thinking us dead, finds the row another step on, or we do. */
  async function settle(id: number, batch: Batch, progress: Progress, now: number): Promise<void> {
    await database.query(
      "operation-settle",
      `update ${s}.operation set done = done + $3, passed = passed + $4, failed = failed + $5, error = coalesce($6, error), cursor = $7,
              total = greatest(total, done + passed + failed + $3 + $4 + $5), batch = null, steps = steps + 1, next_ms = $8,
              state = case state when 'stopping' then 'stopped' else state end,
              ended_ms = case state when 'stopping' then $8::bigint end
       where id = $1 and steps = $2`,
      [
        ...[id, batch.steps, progress.done, progress.passed, progress.failed, progress.error],
        ...[JSON.stringify(progress.cursor), now],
      ],
    );
  }

  async function breakOff(id: number, error: unknown, now: number): Promise<void> {
    const text = isCarillonError(error) ? `${error.code}: ${error.message}` : messageOf(error);
    database.log.error({ operation: id, error: text }, "an operation was broken off");
    await database.query(
      "operation-break",
      `update ${s}.operation set state = 'failed', error = $2, ended_ms = $3 where id = $1 and ended_ms is null`,
      [id, text, now],
    );
  }
}

/**
 * What another try mends: a store that is away, a conflict of two transactions, a task that was removed between being read
 * and being written to. Anything else would come again for ever.
 */
function isPassing(error: unknown): boolean {
  if (isCarillonError(error)) return error.code.startsWith("STORE_");
  return /^(?:40|55|57)/.test((error as { code?: string }).code ?? "");
}
