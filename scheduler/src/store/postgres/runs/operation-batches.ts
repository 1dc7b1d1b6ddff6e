import type { SqlClient } from "../../../base/change.ts";
import { isCarillonError, messageOf } from "../../../base/errors.ts";
import type { OperationFilter, OperationKind, OperationRequest } from "../../../run/operations.ts";
import { liveStates } from "../../../run/run.ts";
import { sideBySide } from "../../side-by-side.ts";
import type { Database } from "../database.ts";
import { runOutcome } from "../states.ts";
import { andLabelsSql, taskIdsSql, taskValues } from "../tasks/task-filter.ts";
import type { Batch, BatchItem, OpenOperation, OperationContext, Preview, Progress } from "./operation-rows.ts";

const tasksPerBatch = 10;
const runsPerBatch = 50;
const cancelledAtOnce = 4;

/* Operations that pause, resume or cancel. They process items in batches, and each item has its own transaction. */

const tasksSql = (
  s: string,
  more: string,
) => `from ${s}.task t where t.id in (${taskIdsSql(s)}) and t.deleted_ms is null and t.version > 0
  and (t.paused_ms is null) = $4 ${more}`;

const runsSql = (s: string, labels: string, more: string) => `from ${s}.run r join ${s}.task t on t.id = r.task_id
  where (coalesce($1, $2, $3) is null or r.task_id in (${taskIdsSql(s)})) and r.state = any($4)
    and ($5::bigint is null or r.due_ms >= $5) and ($6::bigint is null or r.due_ms <= $6)${labels} ${more}`;

function statement(s: string, kind: OperationKind, filter: OperationFilter) {
  if (kind !== "cancel")
    return { sql: (more: string) => tasksSql(s, more), values: [...taskValues(filter), kind === "pause"], row: "t" };
  const states = (filter.states ?? liveStates).map((state) => (liveStates as readonly string[]).indexOf(state));
  const values = [...taskValues(filter), states, filter.sinceMs ?? null, filter.untilMs ?? null];
  return { sql: (more: string) => runsSql(s, andLabelsSql("r", filter), more), values, row: "r" };
}

export async function previewBatches(
  database: Database,
  { kind, filter }: OperationRequest,
  show: number,
): Promise<Preview> {
  const s = database.schema;
  const { sql, values, row } = statement(s, kind, filter);
  const [counted] = await database.query<{ total: number }>("", `select count(*) as total ${sql("")}`, values);
  const first = await database.query<BatchItem>(
    "",
    `select ${row}.id, t.name ${sql(`order by ${row}.id limit ${show}`)}`,
    values,
  );
  const words = ({ id, name }: BatchItem) => (kind === "cancel" ? `run ${id} of ${name}` : name);
  return { total: counted?.total ?? 0, first: first.map(words) };
}

export async function pickBatch(
  client: SqlClient,
  s: string,
  { kind, filter, cursor, last_run_id }: OpenOperation,
): Promise<BatchItem[]> {
  const { sql, values, row } = statement(s, kind, filter);
  const after = `$${values.length + 1}`;
  const bound = kind === "cancel" ? `and r.id <= ${Number(last_run_id)}` : "";
  const most = kind === "cancel" ? runsPerBatch : tasksPerBatch;
  const { rows } = await client.query(
    `select ${row}.id, t.name ${sql(`and ${row}.id > ${after} ${bound} order by ${row}.id limit ${most}`)}`,
    [...values, cursor.id ?? 0],
  );
  return rows.map(({ id, name }) => ({ id: Number(id), name: String(name) }));
}

const soonestLookMs = 100;
const latestLookMs = 10_000;
/** The greatest difference that is assumed between the clocks of two nodes, in ms. */
const clocksApartMs = 60_000;

/**
 * Counts how runs ended whose workers were asked to stop them, because a handler may complete its run instead. Runs that have not ended are
 * checked again, at increasing intervals.
 */
export async function countAsked(client: SqlClient, s: string, open: OpenOperation, now: number): Promise<Progress> {
  const { cursor, created_ms } = open;
  const { asked = [], looks = 0 } = cursor;
  const nothing = { passed: 0, failed: 0, error: null };
  if (asked.length === 0) return { ...nothing, done: 0, cursor, left: false, nextMs: now };
  const { rows } = await client.query(
    `select i.id::float8 as id, r.id is not null as lives, h.outcome = ${runOutcome.cancelled} as cancelled
     from unnest($1::bigint[]) as i (id) left join ${s}.run r on r.id = i.id
          left join ${s}.run_history h on h.id = i.id and h.ended_ms >= $2`,
    [asked, created_ms - clocksApartMs],
  );
  const ended = rows.filter(({ lives }) => lives === false);
  const done = ended.filter(({ cancelled }) => cancelled === true).length;
  const left = asked.length > ended.length;
  const going = new Set(rows.filter(({ lives }) => lives === true).map(({ id }) => Number(id)));
  return {
    ...nothing,
    done,
    cursor: {
      ...cursor,
      asked: asked.filter((id) => going.has(id)),
      looks: looks + 1,
      late: (cursor.late ?? 0) + ended.length - done,
    },
    left,
    nextMs: left ? now + Math.min(soonestLookMs * 2 ** Math.min(looks, 10), latestLookMs) : now,
  };
}

/**
 * Processes a batch. If an earlier process has already handled an item before it crashed, the item counts as done. A process may be stalled
 * so long that another process repeats and counts the batch. When it continues, it pauses and resumes no more tasks, because an operator
 * may have undone the operation meanwhile.
 */
export async function carryOut(
  { s, tasks, runs }: OperationContext,
  open: OpenOperation,
  { items, steps }: Batch,
  nowMs: number,
): Promise<Progress> {
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
  const asked = [...(open.cursor.asked ?? [])];
  const one = async (item: BatchItem): Promise<"done" | "passed" | "asked"> => {
    if (kind === "cancel") return cancelOne(item.id, reason);
    if (kind === "pause") return pauseOne(item.name);
    await tasks.resume(item.name, { author, reason, nowMs }, isWanted);
    return "done";
  };
  const pauseOne = async (name: string) => {
    const untilMs = open.pause_until_ms === null ? null : Number(open.pause_until_ms);
    // The pause would end before it began.
    if (untilMs !== null && untilMs <= nowMs) return "passed";
    await tasks.pause(name, { author, reason, nowMs, untilMs }, isWanted);
    return "done";
  };
  const cancelOne = async (runId: number, why: string) => {
    try {
      const answer = await runs.cancel(runId, why, nowMs);
      return answer === "asked" ? "asked" : "done";
    } catch (error) {
      if (!isCarillonError(error, "RUN_STATE")) throw error;
      return (await runs.find(runId)).state === "cancelled" ? "done" : "passed";
    }
  };
  await sideBySide(items, kind === "cancel" ? cancelledAtOnce : 1, async (item) => {
    try {
      const end = await one(item);
      if (end === "asked") asked.push(item.id);
      else progress[end] += 1;
    } catch (error) {
      if (!isCarillonError(error) || error.code.startsWith("STORE_")) throw error;
      // The task was removed, or retention deleted the run, so there is nothing to do.
      if (error.code === "TASK_UNKNOWN" || error.code === "RUN_UNKNOWN") progress.passed += 1;
      else {
        progress.failed += 1;
        progress.error = `${item.name}: ${messageOf(error)}`;
      }
    }
  });
  const cursor = { ...open.cursor, id: items.at(-1)?.id ?? 0 };
  return { ...progress, cursor: asked.length === 0 ? cursor : { ...cursor, asked, looks: 0 } };
}
