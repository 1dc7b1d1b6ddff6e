import type { Change } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import type { OperationState } from "../../../run/operations.ts";
import {
  checkRequest,
  type OperationRecord,
  type OperationRequest,
  type OperationStore,
  operationTransition,
  operationUnknown,
} from "../../../run/operations.ts";
import type { Enqueued } from "../../../run/run-record.ts";
import type { RunStore } from "../../../run/run-store.ts";
import type { TaskStore } from "../../../task/task-store.ts";
import { audited } from "../access/audit.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { endedMeanwhile, existing, unlessTaken } from "../enqueue/enqueue.ts";
import { RunIds } from "../enqueue/run-ids.ts";
import { queryIn } from "../query.ts";
import { previewBackfill } from "./backfill.ts";
import { previewBatches } from "./operation-batches.ts";
import { previewReruns, rerunOne } from "./operation-reruns.ts";
import { asOperation, type OpenOperation, type OperationContext, type OperationRow } from "./operation-rows.ts";
import { isBatched, step } from "./operation-steps.ts";

const previewMax = 20;

/**
 * Operations are processed in steps. A step is one transaction that locks the operation's row: its work, its new position and its counts
 * commit together, so that the next process continues exactly there. Actions with their own transactions (pausing a task, cancelling a run)
 * are first recorded as a batch. They can be repeated without harm, and the column `steps` ensures that they are counted once.
 */
export function operationStore(database: Database, tasks: TaskStore, runs: RunStore): OperationStore {
  const s = database.schema;
  const context: OperationContext = { database, s, tasks, runs, runIds: new RunIds(database) };

  return {
    preview: (request, nowMs, show) => preview(context, request, nowMs, show),
    begin: (request, token, nowMs) => begin(context, request, token, nowMs),
    step: (nowMs, operationId) => step(context, nowMs, operationId),
    rerun: (runId, change, made) => rerun(context, runId, change, made),
    stop: (operationId, nowMs, by) => stop(database, operationId, nowMs, by),
    find: (operationId) => find(database, operationId),
    list: (limit) => list(database, limit),
  };
}

async function preview(
  context: OperationContext,
  request: OperationRequest,
  nowMs: number,
  show: number,
): Promise<{ total: number; first: string[] }> {
  await check(context, request, nowMs);
  return counted(context, request, nowMs, Math.min(show, previewMax));
}

async function begin(
  context: OperationContext,
  request: OperationRequest,
  token: string,
  nowMs: number,
): Promise<number> {
  const { database, s } = context;
  await check(context, request, nowMs);
  const { total } = await counted(context, request, nowMs, 0);
  const now = Math.round(nowMs);
  return database.persist(async () => {
    const [row] = await database.query<{ id: number }>(
      "operation-begin",
      `with made as (
         insert into ${s}.operation (token, kind, filter, range, author, reason, total, last_run_id, next_ms, stepped_ms, created_ms, pause_until_ms)
         select $1, $2, $3, $4, $5, $6, $7, last_value, $8, $8, $8, $9::bigint from ${s}.run_id
         on conflict (token) do nothing returning id),
       put_down as (
         insert into ${s}.audit (at_ms, who, act, about, named, after, why)
         select $8, $5, $2, 'operation', id::text, jsonb_build_object('filter', $3::jsonb, 'range', $4::jsonb, 'total', $7::bigint)
                  || case when $9::bigint is null then '{}' else jsonb_build_object('pauseUntilMs', $9::bigint) end, $6 from made),
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
        request.pauseUntilMs ?? null,
      ],
    );
    if (row) return row.id;
    // Another process inserted this operation after the snapshot of the statement above was taken.
    const [other] = await database.query<{ id: number }>(
      "operation-begun",
      `select id from ${s}.operation where token = $1`,
      [token],
    );
    if (!other) throw new Error("an operation that was just written is not there");
    return other.id;
  });
}

async function rerun(context: OperationContext, runId: number, change: Change, drawn?: number): Promise<Enqueued> {
  const { database, s, runIds } = context;
  const now = Math.round(change.nowMs);
  const number = drawn ?? ((await runIds.take(1))[0] as number);
  return database.persist((repeats) =>
    database.transaction(async (client) => {
      // An earlier try may have created the run, or may still be committed during this one.
      const known = repeats || drawn !== undefined;
      const query = queryIn(client);
      if (known && (await existing(query, s, [number], now)).size > 0) return { runId: number, created: true };
      const run = await rerunOne(context, client, runId, number, now).catch((error) => {
        unlessTaken(error, known);
        throw error;
      });
      if (known && (await existing(query, s, [number], now, false)).size > 0) throw endedMeanwhile();
      if (run.runId === number && !run.created) return { runId: number, created: true };
      if (run.created) {
        await audited(client, s, {
          atMs: now,
          who: change.author,
          act: "rerun",
          about: "run",
          named: String(runId),
          before: null,
          after: { run: run.runId },
          why: change.reason,
        });
      }
      return run;
    }),
  );
}

async function stop(
  database: Database,
  operationId: number,
  nowMs: number,
  by?: Pick<Change, "author" | "reason">,
): Promise<OperationState> {
  const s = database.schema;
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
      // If the stop had to wait for the store, its time is before the last steps, so the end is set no earlier than the last step.
      await client.query(
        `update ${s}.operation set state = $2, ended_ms = case when $2 = 'stopped' then greatest($3::bigint, stepped_ms) end, next_ms = $3 where id = $1`,
        [operationId, state, now],
      );
      await client.query(`select ${notifySql(s, "'operations'")}`);
      if (by) {
        await audited(client, s, {
          atMs: now,
          who: by.author,
          act: "stop",
          about: "operation",
          named: String(operationId),
          before: { state: row.state },
          after: { state },
          why: by.reason,
        });
      }
      return state;
    }),
  );
}

async function find(database: Database, operationId: number): Promise<OperationRecord> {
  const s = database.schema;
  const [row] = await database.query<OperationRow>("operation-find", `select * from ${s}.operation where id = $1`, [
    operationId,
  ]);
  if (!row) throw operationUnknown(operationId);
  return asOperation(row);
}

async function list(database: Database, limit: number): Promise<OperationRecord[]> {
  const s = database.schema;
  const rows = await database.query<OperationRow>(
    "operation-list",
    `select * from ${s}.operation order by id desc limit $1`,
    [limit],
  );
  return rows.map(asOperation);
}

async function check({ tasks }: OperationContext, request: OperationRequest, nowMs: number): Promise<void> {
  checkRequest(request, nowMs);
  const { task } = request.filter;
  if (task === undefined) return;
  // Dead letters remain when their task is removed, so a dismissal does not need the task.
  if (request.kind !== "dismiss") await tasks.byName(task);
}

function counted(context: OperationContext, request: OperationRequest, nowMs: number, show: number) {
  if (request.kind === "backfill") return previewBackfill(context, request, nowMs, show);
  const { database } = context;
  return isBatched(request.kind) ? previewBatches(database, request, show) : previewReruns(database, request, show);
}
