import type { SqlClient } from "../../../base/change.ts";
import { CarillonError, isCarillonError } from "../../../base/errors.ts";
import type { Overrides } from "../../../run/enqueue-options.ts";
import type { OperationFilter, OperationRequest } from "../../../run/operations.ts";
import { outcomes } from "../../../run/run.ts";
import type { Enqueued, EnqueueWrite } from "../../../run/run-record.ts";
import type { RunLabels } from "../../../task/kinds/run-labels.ts";
import { settleGates } from "../claims/gates.ts";
import type { Database } from "../database.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { letterState } from "../states.ts";
import { andLabelsSql, taskIdsSql, taskValues } from "../tasks/task-filter.ts";
import { letterValues, openLettersSql } from "./dead-letters.ts";
import type { BatchItem, OpenOperation, OperationContext, Preview, Progress } from "./operation-rows.ts";

const runsPerStep = 200;
/* Operations that rerun, redrive or dismiss. They act on ended runs, in the transaction that moves the cursor. */

interface Mark {
  /** The numbers of the new runs, keyed by the numbers of the ended ones. */
  made: Map<number, number>;
  operationId: number | null;
  state: number;
}

interface Past {
  id: number;
  endedMs: number;
  taskId: number;
  payload: string | null;
  priority: number | null;
  key: string | null;
  slotMs: number | null;
  /** The numbers of the runs that this run followed or continued, as a PostgreSQL array in text. */
  inputs: string | null;
  /** The number of the run whose children this run joined. */
  joined: number | null;
  limitKey: string | null;
  overrides: Overrides | null;
  labels: RunLabels | null;
  /** The part that this run is of a split run, as a PostgreSQL array in text. */
  shard: string | null;
  /** The first cause of the run, for runs that were not caused by a slot. */
  origin: number | null;
  /** True if the run's task exists. */
  exists: boolean;
  /** True if the run's row in the history exists. */
  kept: boolean;
}

const pastFields = `t.deleted_ms is null as exists, h.payload::text as payload, h.priority, h.key, h.slot_ms as "slotMs",
    coalesce(h.inputs, case when h.source = ${sourceNumber("after")} then array[h.parent_id] end)::text as inputs,
    case when h.source = ${sourceNumber("join")} then h.parent_id end as joined,
    h.limit_key as "limitKey", h.overrides, h.labels, h.shard::text as shard, h.origin`;

const endedSql = (
  s: string,
  filter: OperationFilter,
  more: string,
) => `from ${s}.run_history h join ${s}.task t on t.id = h.task_id
  where h.outcome = any($4) and ($5::bigint is null or h.ended_ms >= $5) and ($6::bigint is null or h.ended_ms <= $6)
    and (coalesce($1, $2, $3) is null or h.task_id in (${taskIdsSql(s)})) and h.id <= $7${andLabelsSql("h", filter)} ${more}`;

const lettersSql = (s: string, filter: OperationFilter) => (more: string) =>
  `from ${s}.dead_letter d join ${s}.task t on t.id = d.task_id
  where ${openLettersSql(s, filter)} and d.run_id <= $7 ${more}`;

function pastStatement(s: string, { kind, filter }: Pick<OpenOperation, "kind" | "filter">) {
  if (kind !== "rerun") return { sql: lettersSql(s, filter), values: letterValues(filter), id: "d.run_id" };
  const states = (filter.states ?? ["failed"]).map((state) => (outcomes as readonly string[]).indexOf(state));
  const values = [...taskValues(filter), states, filter.sinceMs ?? null, filter.untilMs ?? null];
  return { sql: (more: string) => endedSql(s, filter, more), values, id: "h.id" };
}

export async function previewReruns(database: Database, request: OperationRequest, show: number): Promise<Preview> {
  const s = database.schema;
  const { sql, values, id } = pastStatement(s, request);
  const all = [...values, Number.MAX_SAFE_INTEGER];
  const [counted] = await database.query<{ total: number }>("", `select count(*) as total ${sql("")}`, all);
  const text = `select ${id} as id, t.name ${sql(`order by ${id} limit ${show}`)}`;
  const first = show === 0 ? [] : await database.query<BatchItem>("", text, all);
  return { total: counted?.total ?? 0, first: first.map(({ id, name }) => `run ${id} of ${name}`) };
}

/**
 * Reruns one ended run.
 * @param made the number drawn for the new run
 * @throws RUN_UNKNOWN, RUN_STATE, TASK_UNKNOWN
 */
export async function rerunOne(
  { s, runs }: OperationContext,
  client: SqlClient,
  runId: number,
  made: number | undefined,
  now: number,
): Promise<Enqueued> {
  const { rows } = await client.query(
    `select h.id, h.ended_ms as "endedMs", h.task_id as "taskId", true as kept, ${pastFields}
     from ${s}.run_history h join ${s}.task t on t.id = h.task_id where h.id = $1`,
    [runId],
  );
  const past = rows as unknown as Past[];
  if (!past[0]) {
    const { state } = await runs.find(runId);
    throw new CarillonError("RUN_STATE", `run ${runId} has not ended (${state})`, {
      hint: "Wait for its end, or cancel it.",
    });
  }
  const { exists, taskId } = past[0];
  if (!exists) throw new CarillonError("TASK_UNKNOWN", `the task of run ${runId} was removed`);
  const write = { ...writeOf(past[0], now), runId: made };
  const run = await runs.enqueueIn(client, write, now, "later");
  if (!run.created) return run;
  const again = new Map([[runId, run.runId]]);
  await inherit(client, s, past, again);
  await settleGates(client, s, [taskId], now, false);
  await mark(client, s, past, { made: again, operationId: null, state: letterState.redriven });
  return run;
}

export async function stepReruns(
  context: OperationContext,
  client: SqlClient,
  open: OpenOperation,
  now: number,
): Promise<Progress> {
  const { s } = context;
  // Runs that ended after the operation began are not in its total, so the operation does not rerun, redrive or dismiss them.
  const untilMs = Math.min(open.filter.untilMs ?? open.created_ms, open.created_ms);
  const bound = { ...open, filter: { ...open.filter, untilMs } };
  const picked = open.kind === "rerun" ? await pickEnded(client, s, bound) : await pickLetters(client, s, bound);
  const again = open.kind === "rerun" ? await runAgainAlready(client, s, picked) : new Set<number>();
  const past = picked.filter(({ id }) => !again.has(id));
  const last = picked.at(-1);
  const cursor = last ? { taskId: last.taskId, endedMs: last.endedMs, id: last.id } : open.cursor;
  const progress = {
    done: 0,
    passed: again.size,
    failed: 0,
    error: null,
    cursor,
    left: last !== undefined,
    nextMs: now,
  };
  if (open.kind === "dismiss") {
    await mark(client, s, past, { made: new Map(), operationId: open.id, state: letterState.dismissed });
    return { ...progress, done: past.length };
  }
  const { made, error } = await runAgain(context, client, past, now);
  const remade = past.filter(({ id }) => made.has(id));
  await mark(client, s, remade, { made, operationId: open.id, state: letterState.redriven });
  return { ...progress, done: made.size, failed: past.length - made.size, error };
}

async function pickEnded(client: SqlClient, s: string, open: OpenOperation): Promise<Past[]> {
  const { sql, values } = pastStatement(s, open);
  const { taskId = 0, endedMs = 0, id = 0 } = open.cursor;
  const { rows } = await client.query(
    `select h.id, h.ended_ms as "endedMs", h.task_id as "taskId", true as kept, ${pastFields}
     ${sql(`and (h.task_id, h.ended_ms, h.id) > ($8, $9, $10) order by h.task_id, h.ended_ms, h.id limit ${runsPerStep}`)}`,
    [...values, open.last_run_id, taskId, endedMs, id],
  );
  return rows as unknown as Past[];
}

/**
 * Returns those of the failed runs that a redrive or a rerun has already run again. It locks their dead letters in the same order as a
 * redrive: if two operations act on the same failures at the same time, the second waits and then sees the result of the first.
 */
async function runAgainAlready(client: SqlClient, s: string, past: Past[]): Promise<Set<number>> {
  const { rows } = await client.query(
    `select d.run_id as id, d.state from ${s}.dead_letter d
     where (d.run_id, d.ended_ms) in (select * from unnest($1::bigint[], $2::bigint[])) order by d.ended_ms, d.run_id for update`,
    [past.map(({ id }) => id), past.map(({ endedMs }) => endedMs)],
  );
  return new Set(rows.filter(({ state }) => state === letterState.redriven).map(({ id }) => Number(id)));
}

/**
 * Selects and locks dead letters in order. If two operations redrive the same dead letters, the second waits, and then finds that they are
 * no longer open.
 */
async function pickLetters(client: SqlClient, s: string, open: OpenOperation): Promise<Past[]> {
  const { values } = pastStatement(s, open);
  const { endedMs = 0, id = 0 } = open.cursor;
  const { rows } = await client.query(
    `with picked as materialized (
       select d.run_id, d.ended_ms, d.task_id from ${s}.dead_letter d
       where ${openLettersSql(s, open.filter)} and d.run_id <= $7 and (d.ended_ms, d.run_id) > ($8, $9)
       order by d.ended_ms, d.run_id limit ${runsPerStep} for update)
     select p.run_id as id, p.ended_ms as "endedMs", p.task_id as "taskId", h.id is not null as kept, ${pastFields}
     from picked p join ${s}.task t on t.id = p.task_id
          left join ${s}.run_history h on h.id = p.run_id and h.ended_ms = p.ended_ms
     order by p.ended_ms, p.run_id`,
    [...values, open.last_run_id, endedMs, id],
  );
  return rows as unknown as Past[];
}

/** Enqueues a new run with the same properties for each ended run, by task number, because gates are locked in this order. */
async function runAgain({ s, runs }: OperationContext, client: SqlClient, past: Past[], now: number) {
  const made = new Map<number, number>();
  let error: string | null = null;
  for (const one of past.toSorted((a, b) => a.taskId - b.taskId)) {
    const { id, key, exists, kept } = one;
    if (!exists || !kept) {
      error = `run ${id}: its ${exists ? "history was dropped by retention" : "task was removed"}`;
      continue;
    }
    const write = writeOf(one, now);
    try {
      const run = await runs.enqueueIn(client, write, now, "later");
      if (run.created) made.set(id, run.runId);
      else error = `run ${id}: run ${run.runId} lives and has its key ${key}`;
    } catch (failure) {
      // Another transaction removed the task after this one had read it. The error does not abort this transaction.
      if (!isCarillonError(failure, "TASK_UNKNOWN")) throw failure;
      error = `run ${id}: its task was removed`;
    }
  }
  await inherit(client, s, past, made);
  // Slots of concurrency are given out after the slots are copied, so that a run that is skipped now is recorded together with its slot.
  const taskIds = past.filter(({ id }) => made.has(id)).map(({ taskId }) => taskId);
  if (taskIds.length > 0) await settleGates(client, s, taskIds, now, false);
  return { made, error };
}

/**
 * Copies slots, inputs and origins of the ended runs to the new ones. A part of a split run also keeps its part number, because the new run
 * would otherwise be split into all parts again. The new runs have no parent, except joining runs, which find the runs that they join by
 * the parent. In particular a rerun of a child has no parent, because an open join would otherwise wait for it.
 */
async function inherit(client: SqlClient, s: string, past: Past[], made: Map<number, number>) {
  const heirs = past.filter(
    ({ id, slotMs, inputs, joined, shard, origin }) =>
      made.has(id) && (slotMs ?? inputs ?? joined ?? shard ?? origin) !== null,
  );
  if (heirs.length === 0) return;
  await client.query(
    `update ${s}.run r set slot_ms = i.slot_ms, inputs = i.inputs::bigint[], parent_id = i.joined, shard = i.shard::int[], origin = i.origin,
            source = case when i.joined is null then r.source else ${sourceNumber("join")} end
     from unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::bigint[])
          as i (id, slot_ms, inputs, joined, shard, origin) where r.id = i.id`,
    [
      heirs.map(({ id }) => made.get(id)),
      heirs.map(({ slotMs }) => slotMs),
      heirs.map(({ inputs }) => inputs),
      heirs.map(({ joined }) => joined),
      heirs.map(({ shard }) => shard),
      heirs.map(({ origin }) => origin),
    ],
  );
}

/** Closes the open dead letters of the runs: sets their state, and records the new run and the operation, if any. */
async function mark(client: SqlClient, s: string, past: Past[], { made, operationId, state }: Mark) {
  if (past.length === 0) return;
  await client.query(
    `update ${s}.dead_letter d set state = $4, redriven_by = i.made, operation_id = $5
     from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as i (id, ended_ms, made)
     where d.run_id = i.id and d.ended_ms = i.ended_ms and d.state = ${letterState.open}`,
    [
      past.map(({ id }) => id),
      past.map(({ endedMs }) => endedMs),
      past.map(({ id }) => made.get(id) ?? null),
      state,
      operationId,
    ],
  );
}

/** Returns the enqueue for a new run with the properties of the ended one, due now. */
const writeOf = ({ taskId, payload, key, limitKey, priority, overrides, labels }: Past, now: number): EnqueueWrite => ({
  taskId,
  payload,
  dueMs: now,
  key,
  limitKey,
  priority,
  overrides,
  labels,
  source: "manual",
});
