import { CarillonError, isCarillonError, messageOf } from "../errors.ts";
import type { BackfillRange, OperationFilter, OperationKind, OperationRequest, OperationState } from "../operations.ts";
import { liveStates, outcomes } from "../run.ts";
import type { Enqueued, EnqueueWrite, RunStore, SqlClient, TaskStore } from "../store.ts";
import type { Database } from "./database.ts";
import { letterValues, openLettersSql } from "./dead-letters.ts";
import { settleGates } from "./gates.ts";
import { sourceNumber } from "./sources.ts";
import { taskIdsSql, taskValues } from "./task-filter.ts";

/** An operation as its row has it, while it is open. */
export interface OpenOperation {
  id: number;
  kind: OperationKind;
  filter: OperationFilter;
  range: BackfillRange | null;
  state: OperationState;
  reason: string;
  author: string;
  /** The highest number of a run when it began: what it makes itself is not its business. */
  last_run_id: number;
  cursor: Record<string, number>;
  batch: BatchItem[] | null;
  steps: number;
  created_ms: number;
}

export interface Progress {
  done: number;
  passed: number;
  failed: number;
  error: string | null;
  cursor: Record<string, number>;
  left: boolean;
  nextMs: number;
}

export interface BatchItem {
  id: number;
  name: string;
}

export interface Batch {
  items: BatchItem[];
  steps: number;
}

interface Preview {
  total: number;
  first: string[];
}

const runsPerStep = 200;
const tasksPerBatch = 10;
const runsPerBatch = 50;
const cancelledAtOnce = 4;

// ---- pause, resume, cancel: transactions of their own, in batches

export function batchSteps(database: Database, tasks: TaskStore, runs: RunStore) {
  const s = database.schema;
  const tasksSql = (
    more: string,
  ) => `from ${s}.task t where t.id in (${taskIdsSql(s)}) and t.deleted_ms is null and t.version > 0
    and (t.paused_ms is null) = $4 ${more}`;
  const runsSql = (more: string) => `from ${s}.run r join ${s}.task t on t.id = r.task_id
    where (coalesce($1, $2, $3) is null or r.task_id in (${taskIdsSql(s)})) and r.state = any($4)
      and ($5::bigint is null or r.due_ms >= $5) and ($6::bigint is null or r.due_ms <= $6) ${more}`;
  const statement = (kind: OperationKind, filter: OperationFilter) => {
    if (kind !== "cancel") return { sql: tasksSql, values: [...taskValues(filter), kind === "pause"], row: "t" };
    const states = (filter.states ?? liveStates).map((state) => (liveStates as readonly string[]).indexOf(state));
    const values = [...taskValues(filter), states, filter.sinceMs ?? null, filter.untilMs ?? null];
    return { sql: runsSql, values, row: "r" };
  };

  return {
    async preview({ kind, filter }: OperationRequest, show: number): Promise<Preview> {
      const { sql, values, row } = statement(kind, filter);
      const [counted] = await database.query<{ total: number }>("", `select count(*) as total ${sql("")}`, values);
      const first = await database.query<BatchItem>(
        "",
        `select ${row}.id, t.name ${sql(`order by ${row}.id limit ${show}`)}`,
        values,
      );
      const words = ({ id, name }: BatchItem) => (kind === "cancel" ? `run ${id} of ${name}` : name);
      return { total: counted?.total ?? 0, first: first.map(words) };
    },

    async pick(client: SqlClient, { kind, filter, cursor, last_run_id }: OpenOperation): Promise<BatchItem[]> {
      const { sql, values, row } = statement(kind, filter);
      const after = `$${values.length + 1}`;
      const bound = kind === "cancel" ? `and r.id <= ${Number(last_run_id)}` : "";
      const most = kind === "cancel" ? runsPerBatch : tasksPerBatch;
      const { rows } = await client.query(
        `select ${row}.id, t.name ${sql(`and ${row}.id > ${after} ${bound} order by ${row}.id limit ${most}`)}`,
        [...values, cursor.id ?? 0],
      );
      return rows.map(({ id, name }) => ({ id: Number(id), name: String(name) }));
    },

    /**
     * Each may have been done by an earlier try whose process died: then it is found done, and counts as done. Whoever stood
     * still and was taken for dead pauses and resumes nothing once the batch was counted: it may have been undone since.
     */
    async carryOut(open: OpenOperation, { items, steps }: Batch, nowMs: number): Promise<Progress> {
      const { kind, author } = open;
      const isWanted = async (client: SqlClient) => {
        const { rows } = await client.query(`select from ${s}.operation where id = $1 and steps = $2 for share`, [
          open.id,
          steps,
        ]);
        return rows.length > 0;
      };
      const reason = open.reason || `operation ${open.id}`;
      const progress = { done: 0, passed: 0, failed: 0, error: null as string | null, left: true, nextMs: nowMs };
      const one = async (item: BatchItem): Promise<"done" | "passed"> => {
        if (kind === "cancel") return cancelOne(item.id, reason);
        if (kind === "pause") await tasks.pause(item.name, { author, reason, nowMs }, isWanted);
        else await tasks.resume(item.name, { author, reason, nowMs }, isWanted);
        return "done";
      };
      const cancelOne = async (runId: number, why: string) => {
        try {
          await runs.cancel(runId, why, nowMs);
          return "done";
        } catch (error) {
          if (!isCarillonError(error, "RUN_STATE")) throw error;
          return (await runs.find(runId)).state === "cancelled" ? "done" : "passed";
        }
      };
      const queue = [...items];
      const work = async () => {
        for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
          try {
            progress[await one(item)] += 1;
          } catch (error) {
            if (!isCarillonError(error) || error.code.startsWith("STORE_")) throw error;
            // A task that was removed, a run that retention dropped: nothing is left to act on.
            if (error.code === "TASK_UNKNOWN" || error.code === "RUN_UNKNOWN") progress.passed += 1;
            else {
              progress.failed += 1;
              progress.error = `${item.name}: ${messageOf(error)}`;
            }
          }
        }
      };
      await Promise.all(Array.from({ length: kind === "cancel" ? cancelledAtOnce : 1 }, work));
      return { ...progress, cursor: { id: items.at(-1)?.id ?? 0 } };
    },
  };
}

// ---- rerun, redrive, dismiss: rows of the past, in the transaction that moves the cursor

interface Past {
  id: number;
  endedMs: number;
  taskId: number;
  payload: string | null;
  priority: number | null;
  key: string | null;
  slotMs: number | null;
  /** The runs that it came after or went on from, as the store writes them. */
  inputs: string | null;
  /** The run whose children it joined. */
  joined: number | null;
  limitKey: string | null;
  /** Its part of a split run, as the store writes it. */
  shard: string | null;
  /** What began it, where that was no slot. */
  origin: number | null;
  /** Its task exists. */
  exists: boolean;
  /** Its history does. */
  kept: boolean;
}

export function runSteps(database: Database, runs: RunStore) {
  const s = database.schema;
  const endedSql = (more: string) => `from ${s}.run_history h join ${s}.task t on t.id = h.task_id
    where h.outcome = any($4) and ($5::bigint is null or h.ended_ms >= $5) and ($6::bigint is null or h.ended_ms <= $6)
      and (coalesce($1, $2, $3) is null or h.task_id in (${taskIdsSql(s)})) and h.id <= $7 ${more}`;
  const lettersSql = (filter: OperationFilter) => (more: string) =>
    `from ${s}.dead_letter d join ${s}.task t on t.id = d.task_id
    where ${openLettersSql(s, filter)} and d.run_id <= $7 ${more}`;
  const statement = ({ kind, filter }: Pick<OpenOperation, "kind" | "filter">) => {
    if (kind !== "rerun") return { sql: lettersSql(filter), values: letterValues(filter), id: "d.run_id" };
    const states = (filter.states ?? ["failed"]).map((state) => (outcomes as readonly string[]).indexOf(state));
    const values = [...taskValues(filter), states, filter.sinceMs ?? null, filter.untilMs ?? null];
    return { sql: endedSql, values, id: "h.id" };
  };
  const fields = `t.deleted_ms is null as exists, h.payload::text as payload, h.priority, h.key, h.slot_ms as "slotMs",
    coalesce(h.inputs, case when h.source = ${sourceNumber("after")} then array[h.parent_id] end)::text as inputs,
    case when h.source = ${sourceNumber("join")} then h.parent_id end as joined,
    h.limit_key as "limitKey", h.shard::text as shard, h.origin`;

  return {
    async preview(request: OperationRequest, _nowMs: number, show: number): Promise<Preview> {
      const { sql, values, id } = statement(request);
      const all = [...values, Number.MAX_SAFE_INTEGER];
      const [counted] = await database.query<{ total: number }>("", `select count(*) as total ${sql("")}`, all);
      const text = `select ${id} as id, t.name ${sql(`order by ${id} limit ${show}`)}`;
      const first = show === 0 ? [] : await database.query<BatchItem>("", text, all);
      return { total: counted?.total ?? 0, first: first.map(({ id, name }) => `run ${id} of ${name}`) };
    },

    /** One ended run, by its number. @param made the number drawn for the new one @throws RUN_UNKNOWN, RUN_STATE, TASK_UNKNOWN */
    async one(client: SqlClient, runId: number, made: number | undefined, now: number): Promise<Enqueued> {
      const { rows } = await client.query(
        `select h.id, h.ended_ms as "endedMs", h.task_id as "taskId", true as kept, ${fields}
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
      await inherit(client, past, again);
      await settleGates(client, s, [taskId], now, false);
      await mark(client, past, again, null, 1);
      return run;
    },

    async step(client: SqlClient, open: OpenOperation, now: number): Promise<Progress> {
      // What ended later was not counted when it began, so it is not taken either.
      const untilMs = Math.min(open.filter.untilMs ?? open.created_ms, open.created_ms);
      const bound = { ...open, filter: { ...open.filter, untilMs } };
      const past = open.kind === "rerun" ? await pickEnded(client, bound) : await pickLetters(client, bound);
      const last = past.at(-1);
      const cursor = last ? { taskId: last.taskId, endedMs: last.endedMs, id: last.id } : open.cursor;
      const progress = { done: 0, passed: 0, failed: 0, error: null, cursor, left: last !== undefined, nextMs: now };
      if (open.kind === "dismiss") {
        await mark(client, past, new Map(), open.id, 2);
        return { ...progress, done: past.length };
      }
      const { made, error } = await again(client, past, now);
      await mark(
        client,
        past.filter(({ id }) => made.has(id)),
        made,
        open.id,
        1,
      );
      return { ...progress, done: made.size, failed: past.length - made.size, error };
    },
  };

  async function pickEnded(client: SqlClient, open: OpenOperation): Promise<Past[]> {
    const { sql, values } = statement(open);
    const { taskId = 0, endedMs = 0, id = 0 } = open.cursor;
    const { rows } = await client.query(
      `select h.id, h.ended_ms as "endedMs", h.task_id as "taskId", true as kept, ${fields}
       ${sql(`and (h.task_id, h.ended_ms, h.id) > ($8, $9, $10) order by h.task_id, h.ended_ms, h.id limit ${runsPerStep}`)}`,
      [...values, open.last_run_id, taskId, endedMs, id],
    );
    return rows as unknown as Past[];
  }

  /** Locked in order: of two who redrive the same letters the second waits, and then finds them open no more. */
  async function pickLetters(client: SqlClient, open: OpenOperation): Promise<Past[]> {
    const { values } = statement(open);
    const { endedMs = 0, id = 0 } = open.cursor;
    const { rows } = await client.query(
      `with picked as materialized (
         select d.run_id, d.ended_ms, d.task_id from ${s}.dead_letter d
         where ${openLettersSql(s, open.filter)} and d.run_id <= $7 and (d.ended_ms, d.run_id) > ($8, $9)
         order by d.ended_ms, d.run_id limit ${runsPerStep} for update)
       select p.run_id as id, p.ended_ms as "endedMs", p.task_id as "taskId", h.id is not null as kept, ${fields}
       from picked p join ${s}.task t on t.id = p.task_id
            left join ${s}.run_history h on h.id = p.run_id and h.ended_ms = p.ended_ms
       order by p.ended_ms, p.run_id`,
      [...values, open.last_run_id, endedMs, id],
    );
    return rows as unknown as Past[];
  }

  /** A new run of each, with what it had. Task by task, in the order in which gates are taken. */
  async function again(client: SqlClient, past: Past[], now: number) {
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
        // Removed since it was read, by a transaction that is through; nothing of this one is spoilt by it.
        if (!isCarillonError(failure, "TASK_UNKNOWN")) throw failure;
        error = `run ${id}: its task was removed`;
      }
    }
    await inherit(client, past, made);
    // After their slots are written: who is skipped for want of a place is told with its slot.
    const taskIds = past.filter(({ id }) => made.has(id)).map(({ taskId }) => taskId);
    if (taskIds.length > 0) await settleGates(client, s, taskIds, now, false);
    return { made, error };
  }

  /**
   * The slots, inputs and origins of the old runs; of a part of a split one which it was, or it would be split into all parts again. Made
   * by hand, the new ones are nobody's but for those that join: what these join is found by its parent. One of a child is not its
   * parent's, or an open join would wait for it.
   */
  async function inherit(client: SqlClient, past: Past[], made: Map<number, number>) {
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

  /** What was run again is no open letter any more, whichever way it was asked for. */
  async function mark(
    client: SqlClient,
    past: Past[],
    made: Map<number, number>,
    operationId: number | null,
    state: number,
  ) {
    if (past.length === 0) return;
    await client.query(
      `update ${s}.dead_letter d set state = $4, redriven_by = i.made, operation_id = $5
       from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as i (id, ended_ms, made)
       where d.run_id = i.id and d.ended_ms = i.ended_ms and d.state = 0`,
      [
        past.map(({ id }) => id),
        past.map(({ endedMs }) => endedMs),
        past.map(({ id }) => made.get(id) ?? null),
        state,
        operationId,
      ],
    );
  }
}

/** A run like an ended one, due now. */
const writeOf = ({ taskId, payload, key, limitKey, priority }: Past, now: number): EnqueueWrite => ({
  ...{ taskId, payload, dueMs: now, key, limitKey, priority, source: "manual" },
});
