import type { SqlClient } from "../../../base/change.ts";
import type { ClaimedRun } from "../../../run/claim-store.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { endUnclaimedSql } from "../runs/unclaimed-ends.ts";
import { runOutcome, runRecall, runState, unbegun } from "../states.ts";
import { endGivenUpSql } from "../tasks/misfires.ts";
import { lockPlans, settleGates } from "./gates.ts";
import { takeUpLeft } from "./set-aside.ts";

/** No task has a shorter misfire time, so runs that are less late than this are not checked. */
const leastLateMs = 1_000;

const expiredWhy = "it had not begun when it expired";
/** The most runs that one transaction ends. */
const endedMost = 1_000;

/**
 * SQL condition: runs of the tasks `t` wait only for a slot on a worker and for no other limit, so their gate lets each run through when it
 * is due.
 */
const onlyPerWorker = `t.definition->'limit'->>'perWorker' is not null and t.definition->'limit'->>'perKey' is null
  and t.definition->>'rate' is null and t.gate_limit is null`;

/** A run as a claim's statement picked it: a run of a paused task was set aside instead of claimed. */
export type PickedRun = ClaimedRun & { paused: boolean };

/**
 * Returns the picked runs that are to start, ordered by due time, without runs of a paused task, expired runs, and runs that are too late
 * by their task's policy.
 */
export async function toStart(database: Database, rows: PickedRun[], nowMs: number): Promise<ClaimedRun[]> {
  const stopped = rows.filter(({ paused }) => paused).map(({ taskId }) => taskId);
  if (stopped.length > 0) await takeUpLeft(database, { setAside: stopped }, nowMs);
  const claimed = stopped.length > 0 ? rows.filter(({ paused }) => !paused) : rows;
  claimed.sort((a, b) => a.dueMs - b.dueMs || a.runId - b.runId);
  const over = await endExpiredClaims(database, claimed, nowMs);
  const late = await endLate(database, claimed, nowMs);
  return over.size + late.size > 0 ? claimed.filter(({ fence }) => !over.has(fence) && !late.has(fence)) : claimed;
}

/**
 * Ends those of the just claimed runs that their task's misfire policy gives up: they were planned in time, but the store or every worker
 * was away when they came due. A run that waits for a concurrency limit is judged while it waits (gates.ts), but one that waits for a slot
 * on a worker is judged here; a run that was tried before is only late and not given up. The runs are claimed first, so that no other
 * worker can start them; a crash in between leaves a normal claim.
 * @returns the fences of those that ended: the run as skipped, the slot as missed, with the policy as the reason
 */
async function endLate(database: Database, runs: readonly ClaimedRun[], nowMs: number): Promise<Set<number>> {
  const late = runs.filter(
    ({ slotMs, attempt, dueMs }) => slotMs !== null && attempt === 1 && dueMs < nowMs - leastLateMs,
  );
  if (late.length === 0) return new Set();
  const s = database.schema;
  // The lists are hidden from the planner: when it knew their length, it estimated each element as equally rare, read all live runs, and
  // compared each run with each element. That took 350 ms for 2,000 of 20,000 runs; by key it takes 15 ms.
  const rows = await database.query<{ fence: number; gate: number }>(
    "claim-late",
    endGivenUpSql(s, {
      runs: `unnest((select $1::bigint[]), (select $2::bigint[])) as i (id, fence) join ${s}.run r on r.id = i.id and r.fence = i.fence`,
      where: `r.state + 0 = ${runState.claimed} and (r.gate = 0 or m.waiting and ${onlyPerWorker}) and r.recall <> ${runRecall.cancel}`,
      now: "$3",
      answer: "fence, gate",
    }),
    [late.map(({ runId }) => runId), late.map(({ fence }) => fence), Math.round(nowMs)],
  );
  // The slots that these runs had on the workers go to the next runs.
  if (rows.some(({ gate }) => gate > 0))
    await database.query("claim-late-room", `select ${notifySql(s, "'direct ' || $1::bigint")}`, [Math.round(nowMs)]);
  return new Set(rows.map(({ fence }) => fence));
}

/**
 * Ends claimed runs that have expired: a run ends as skipped if it has not begun when it expires. The claiming worker checks this right
 * after the claim, so that no other worker can start the run meanwhile; a crash in between leaves a normal claim, whose worker does not
 * begin the run. The leader finds expired runs that no worker claims.
 */
async function endExpiredClaims(database: Database, runs: readonly ClaimedRun[], nowMs: number): Promise<Set<number>> {
  const over = runs.filter(({ attempt, expiresMs }) => expiresMs != null && attempt === 1 && expiresMs <= nowMs);
  if (over.length === 0) return new Set();
  const ended = await database.transaction((client) =>
    endRuns(client, database.schema, nowMs, {
      taskIds: over.map(({ taskId }) => taskId),
      which: `using unnest($2::bigint[], $3::bigint[]) as i (id, fence)
        where r.id = i.id and r.fence = i.fence and r.state + 0 = ${runState.claimed} and r.recall <> ${runRecall.cancel}`,
      values: [over.map(({ runId }) => runId), over.map(({ fence }) => fence)],
    }),
  );
  return new Set(ended.map(({ fence }) => Number(fence)));
}

/** Ends the runs that have expired and that no worker has. @returns how many */
export async function endExpired(database: Database, nowMs: number): Promise<number> {
  const s = database.schema;
  const expired = `select r.id, r.task_id from ${s}.run r where r.expires_ms <= $1 and ${unbegun} order by r.expires_ms limit ${endedMost}`;
  let total = 0;
  for (;;) {
    const found = await database.query<{ id: number; task_id: number }>("run-expired", expired, [Math.round(nowMs)]);
    if (found.length === 0) return total;
    const ended = await database.transaction((client) =>
      endRuns(client, s, nowMs, {
        taskIds: found.map((run) => run.task_id),
        which: `where r.id in (select r.id from ${s}.run r where r.id = any ($2::bigint[]) and ${unbegun} for update skip locked)`,
        values: [found.map(({ id }) => id)],
      }),
    );
    total += ended.length;
    // The remaining runs are locked by a claim or a change of their task; the next look finds them again.
    if (ended.length < endedMost) return total;
  }
}

interface Ending {
  taskIds: number[];
  /** The text after `delete from run r`; its parameters `values` start at $2. */
  which: string;
  values: unknown[];
}

async function endRuns(
  client: SqlClient,
  s: string,
  nowMs: number,
  { taskIds, which, values }: Ending,
): Promise<{ fence: number | null }[]> {
  await lockPlans(client, s, [...new Set(taskIds)]);
  const text = endUnclaimedSql(s, {
    which,
    outcome: runOutcome.skipped,
    why: `'${expiredWhy}'`,
    now: "$1",
    answer: "fence, gate, task_id",
  });
  const { rows } = await client.query(text, [Math.round(nowMs), ...values]);
  const counted = rows.flatMap((row) => ((row.gate as number) > 0 ? [row.task_id as number] : []));
  if (counted.length > 0) {
    await settleGates(client, s, counted, nowMs, true);
    // For tasks that count the slots of each worker.
    await client.query(`select ${notifySql(s, `'direct ${Math.round(nowMs)}'`)}`);
  }
  return rows as unknown as { fence: number | null }[];
}
