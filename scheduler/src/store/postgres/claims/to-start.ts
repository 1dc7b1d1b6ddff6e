import type { ClaimedRun } from "../../../run/claim-store.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { runRecall, runState } from "../states.ts";
import { endGivenUpSql } from "../tasks/misfires.ts";
import { takeUpLeft } from "./set-aside.ts";

/** No task's misfire time is shorter, so runs less late than this are not checked. */
const leastLateMs = 1_000;

/** Tasks `t` whose runs wait for a slot on a worker and for no other limit: their gate lets each run through when it is due. */
const onlyPerWorker = `t.definition->'limit'->>'perWorker' is not null and t.definition->'limit'->>'perKey' is null
  and t.definition->>'rate' is null and t.gate_limit is null`;

/** A run as a claim's statement picked it: a run of a paused task was set aside instead of claimed. */
export type PickedRun = ClaimedRun & { paused: boolean };

/** The picked runs that are to start, in the order of their time: none of a paused task, none too late by its task's policy. */
export async function toStart(database: Database, rows: PickedRun[], nowMs: number): Promise<ClaimedRun[]> {
  const stopped = rows.filter(({ paused }) => paused).map(({ taskId }) => taskId);
  if (stopped.length > 0) await takeUpLeft(database, { setAside: stopped }, nowMs);
  const claimed = stopped.length > 0 ? rows.filter(({ paused }) => !paused) : rows;
  claimed.sort((a, b) => a.dueMs - b.dueMs || a.runId - b.runId);
  const late = await endLate(database, claimed, nowMs);
  return late.size > 0 ? claimed.filter(({ fence }) => !late.has(fence)) : claimed;
}

/**
 * Ends those of the just claimed runs that their task's misfire policy gives up: planned in time, but the store or every worker was away
 * when they came due. A run that waits for a concurrency limit is judged while it waits (gates.ts), but here if it waits for a slot on a
 * worker; a run that was tried before is only late. The runs are claimed first so that no other worker can start them; a crash in between
 * leaves a claim like any other.
 * @returns the fences of those that ended: the run as skipped, the slot as missed, with the policy as the reason
 */
async function endLate(database: Database, runs: readonly ClaimedRun[], nowMs: number): Promise<Set<number>> {
  const late = runs.filter(
    ({ slotMs, attempt, dueMs }) => slotMs !== null && attempt === 1 && dueMs < nowMs - leastLateMs,
  );
  if (late.length === 0) return new Set();
  const s = database.schema;
  // The lists are hidden from the planner: with their length known it read all live runs for each one, estimating it as equally rare, and
  // compared each run with each of the list. That took 350 ms for 2,000 of 20,000; by their keys it takes 15.
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
  // Their slots on the workers go to the next runs.
  if (rows.some(({ gate }) => gate > 0))
    await database.query("claim-late-room", `select ${notifySql(s, "'direct ' || $1::bigint")}`, [Math.round(nowMs)]);
  return new Set(rows.map(({ fence }) => fence));
}
