import type { SqlClient } from "../../../base/change.ts";
import type { ReclaimedRun } from "../../../run/claim-store.ts";
import type { Database } from "../database.ts";
import { LooseEnds, tieUp } from "../flow/following.ts";
import { runRecall, runState } from "../states.ts";
import { finishIn } from "./finish.ts";
import { lockPlans, settleGates } from "./gates.ts";
import { releaseIn } from "./release.ts";
import { givenUpError, isGivenUpSql, retryIn } from "./retries.ts";
import { lockGates } from "./retry-tokens.ts";

/** The request of `ClaimStore.reclaim`. */
interface Reclaiming {
  sessionId: number;
  silentForMs: number;
  nowMs: number;
  limit: number;
}

/** A run whose claim is taken back. Its end, retry or release is applied in the form of a worker's verdict. */
interface LostRun extends ReclaimedRun {
  dueMs: number;
  startedMs: number | null;
  endedMs: number;
  linked: boolean;
  /** The name of the lost worker. */
  node: string;
  /** True if the task's `onWorkerLost` is "retry": if such a run fails, it is only because too many of its workers were lost. */
  retries: boolean;
}

/** The error names the worker, because the run may be a part of a broadcast, and then the name shows which member did not finish. */
const silent = ({ node }: LostRun): string =>
  JSON.stringify({
    code: "WORKER_LOST",
    message: `the worker ${JSON.stringify(node)} fell silent while it had this run`,
  });

export async function reclaim(database: Database, request: Reclaiming): Promise<ReclaimedRun[]> {
  const { sessionId, nowMs } = request;
  const s = database.schema;
  const loose = new LooseEnds();
  const reclaimed = await database.transaction(async (client) => {
    const tasks = await gatedTasks(client, s, sessionId);
    await lockPlans(client, s, tasks);
    const lost = await lockLost(client, s, request);
    // Locks all gates that this transaction needs at once, because transactions that lock gates in different orders would deadlock.
    if (lost.some(({ outcome, linked }) => outcome === "retry" && linked)) await lockGates(client, s, tasks);
    await retryIn(client, s, lost.filter(isRetried).map(asRetried(nowMs)), "lost");
    await releaseIn(client, s, lost.filter(({ outcome }) => outcome === "release").map(asReleased), nowMs, loose);
    await finishIn(client, s, lost.filter(isEnded).map(asEnded), nowMs, loose);
    const asked = lost.filter(({ outcome, linked }) => outcome === "ask" && linked).map(({ taskId }) => taskId);
    // A run that waits for an operator's decision holds no slot, so its slot is given out.
    if (asked.length > 0) await settleGates(client, s, asked, nowMs, true);
    return lost;
  });
  await tieUp(database, loose, nowMs);
  return reclaimed;
}

/** Returns the tasks of the session's claimed runs that have a concurrency limit or plan their next slot from a run's end. */
async function gatedTasks(client: SqlClient, s: string, sessionId: number): Promise<number[]> {
  const { rows } = await client.query(
    `select distinct task_id from ${s}.run where session_id = $1 and state = ${runState.claimed} and (gate > 0 or after_end)`,
    [sessionId],
  );
  return rows.map((row) => row.task_id as number);
}

/** Locks the runs whose claims are to be taken back, and decides the outcome of each run. */
async function lockLost(
  client: SqlClient,
  s: string,
  { sessionId, silentForMs, nowMs, limit }: Reclaiming,
): Promise<LostRun[]> {
  const { rows } = await client.query(
    `select r.id as "runId", r.task_id as "taskId", r.fence, r.attempt, r.session_id as "sessionId", r.started_ms as "startedMs",
                  r.due_ms as "dueMs", o.node, (r.gate > 0 or r.after_end) as linked,
                  case when r.recall = ${runRecall.cancel} or t.deleted_ms is not null then 'cancel'
                       when r.started_ms is null and r.due_ms > o.ended_ms then 'release'
                       when t.definition->>'onWorkerLost' = 'ask' then 'ask'
                       when t.definition->>'onWorkerLost' = 'retry'
                        and not (${isGivenUpSql}) then 'retry'
                       else 'fail' end as outcome, t.definition->>'onWorkerLost' = 'retry' as retries
           from ${s}.run r join ${s}.task t on t.id = r.task_id join ${s}.session o on o.id = r.session_id
           where r.session_id = $1 and r.state = ${runState.claimed} and o.ended_ms is not null
             and (r.started_ms is null or (t.definition->>'graceMs')::bigint <= $2)
           order by r.id limit $3 for update of r skip locked`,
    [sessionId, Math.round(silentForMs), limit],
  );
  const lost = rows as unknown as LostRun[];
  return lost.map((run) => ({ ...run, runId: Number(run.runId), fence: Number(run.fence), endedMs: nowMs }));
}

const isRetried = ({ outcome }: LostRun) => outcome === "retry" || outcome === "ask";
const isEnded = ({ outcome }: LostRun) => outcome === "fail" || outcome === "cancel";

// A run that was claimed ahead of its due time must not be retried before its due time.
const asRetried = (nowMs: number) => (run: LostRun) => ({
  ...run,
  verdict: {
    kind: "retry" as const,
    dueMs: Math.max(nowMs, Number(run.dueMs)),
    error: silent(run),
    ask: run.outcome === "ask",
    lost: true,
  },
});

const asReleased = (run: LostRun) => ({ ...run, verdict: { kind: "released" as const } });

const asEnded = (run: LostRun) => ({
  ...run,
  verdict: {
    kind: "ended" as const,
    outcome: run.outcome === "fail" ? ("failed" as const) : ("cancelled" as const),
    result: null,
    error: run.outcome === "fail" && run.retries ? givenUpError : silent(run),
  },
});
