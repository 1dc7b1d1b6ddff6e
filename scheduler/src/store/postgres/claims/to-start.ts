import type { SqlClient } from "../../../base/change.ts";
import type { ClaimedRun } from "../../../run/claim-store.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { endUnclaimedSql } from "../runs/unclaimed-ends.ts";
import { runOutcome, runRecall, runState, unbegun } from "../states.ts";
import { endGivenUpSql } from "../tasks/misfires.ts";
import { lockPlans, settleGates } from "./gates.ts";
import { takeUpLeft } from "./set-aside.ts";

/** No task has a misfire time below this, in ms, so runs that are less late are not checked. */
const leastLateMs = 1_000;

const expiredWhy = "it had not begun when it expired";
/** The most expired runs that one transaction ends. */
const endedMost = 1_000;

/** SQL condition: the limit per worker is the only limit of the task `t`, so its gate lets each run through when the run is due. */
const onlyPerWorker = `t.definition->'limit'->>'perWorker' is not null and t.definition->'limit'->>'perKey' is null
  and t.definition->>'rate' is null and t.gate_limit is null`;

/** A run as the SQL of a claim returned it. `paused`: the run's task is paused, so the run was not claimed. */
export type PickedRun = ClaimedRun & { paused: boolean };

/**
 * Returns the runs that are to start, ordered by due time: without runs of paused tasks, expired runs, and runs that are too late by their
 * task's misfire policy.
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
 * Ends those of the just claimed runs that are too late by their task's misfire policy: runs that were planned in time, but came due while
 * the store or every worker was unavailable. For a run that waits for a concurrency limit, gates.ts checks the policy while the run waits;
 * for a run that waits only for a slot on a worker, this function checks it. A run that has had an attempt is never ended here. The runs
 * are claimed first, so that no other worker can start them; after a crash in between they are normal claims.
 * @returns the fences of the ended runs. Such a run ends as skipped, its slot is recorded as missed, and the reason names the policy
 */
async function endLate(database: Database, runs: readonly ClaimedRun[], nowMs: number): Promise<Set<number>> {
  const late = runs.filter(
    ({ slotMs, attempt, dueMs }) => slotMs !== null && attempt === 1 && dueMs < nowMs - leastLateMs,
  );
  if (late.length === 0) return new Set();
  const s = database.schema;
  // The subselects hide the length of the lists from the planner. When the planner knew it, it read all live runs and compared each run
  // with each element: 350 ms for 2,000 of 20,000 runs, instead of 15 ms by key.
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
  // The slots on workers that these runs would have used go to the next runs.
  if (rows.some(({ gate }) => gate > 0))
    await database.query("claim-late-room", `select ${notifySql(s, "'direct ' || $1::bigint")}`, [Math.round(nowMs)]);
  return new Set(rows.map(({ fence }) => fence));
}

/**
 * Ends claimed runs that expired before their first attempt, as skipped. The claiming worker checks this right after the claim, so that no
 * other worker can start the run meanwhile; after a crash in between the run is a normal claim, whose worker does not start it. The leader
 * finds expired runs that no worker claims.
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

/** Ends runs that have expired and that no worker has claimed. @returns the number of ended runs */
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
    // Either no expired run is left, or a claim or a change of the task has locked it; the next call finds it again.
    if (ended.length < endedMost) return total;
  }
}

interface Ending {
  taskIds: number[];
  /** The SQL after `delete from run r`; the numbers of its parameters, `values`, start at $2. */
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
    // Tasks with a limit per worker need the dispatcher to address their next runs.
    await client.query(`select ${notifySql(s, `'direct ${Math.round(nowMs)}'`)}`);
  }
  return rows as unknown as { fence: number | null }[];
}
