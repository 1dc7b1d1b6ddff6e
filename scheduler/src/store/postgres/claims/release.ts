import type { SqlClient } from "../../../base/change.ts";
import type { Settlement } from "../../../run/claim-store.ts";
import { notifySql, unaddressed } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { LooseEnds, tieUp } from "../flow/following.ts";
import { runRecall, runState } from "../states.ts";
import { finishIn } from "./finish.ts";
import { lockPlans } from "./gates.ts";
import { groupFreedSql, makesRoomSql } from "./group-limits.ts";
import { withdraw } from "./withdraw.ts";

/** Releases claims of runs that have not started. A recalled run ends, or gets the state `paused`, like an unclaimed run of its task. */
export async function release(database: Database, settlements: Settlement[], nowMs: number): Promise<number[]> {
  const released = settlements.filter(({ verdict }) => verdict.kind === "released");
  if (released.length === 0) return [];
  const loose = new LooseEnds();
  const fences = await database.transaction((client) => releaseIn(client, database.schema, released, nowMs, loose));
  await tieUp(database, loose, nowMs);
  return fences;
}

/** Does the same as `release` in the caller's transaction. @param loose collects the work that remains after the commit */
export async function releaseIn(
  client: SqlClient,
  s: string,
  released: Settlement[],
  nowMs: number,
  loose: LooseEnds,
): Promise<number[]> {
  if (released.length === 0) return [];
  // Without this lock, a task could be resumed between the read and the write below, and the run would be left `paused`.
  await lockPlans(client, s, [...new Set(released.map(({ taskId }) => taskId))], true);
  const { rows } = await client.query(
    `update ${s}.run r set state = case when r.recall = ${runRecall.cancel} then ${runState.claimed} else ${runState.ready} end,
              attempt = r.attempt - case when r.recall = ${runRecall.cancel} then 0 else 1 end,
              recall = case when r.recall = ${runRecall.cancel} then ${runRecall.cancel} else ${runRecall.none} end,
              group_id = ${unaddressed}
       from unnest((select $1::bigint[]), (select $2::bigint[])) as i (id, fence), ${s}.plan
       where r.id = i.id and r.fence = i.fence and r.state + 0 = ${runState.claimed} and plan.task_id = r.task_id
       returning r.fence, r.task_id, r.state, plan.paused, r.group_id, case when ${makesRoomSql(s, "r.task_id")} then least(r.due_ms, $3) else r.due_ms end as due_ms,
                 ${makesRoomSql(s, "r.task_id")} as "makesRoom"`,
    [released.map(({ runId }) => runId), released.map(({ fence }) => fence), Math.round(nowMs)],
  );
  const roomy = rows.filter((row) => row.makesRoom && row.state === runState.ready).map((row) => row.task_id);
  if (roomy.length > 0)
    await client.query(groupFreedSql(s, "$1::int[]", "$2::bigint", false), [roomy, Math.round(nowMs)]);
  const stopped = new Set(
    rows.filter((row) => row.paused && row.state === runState.ready).map((row) => row.task_id as number),
  );
  for (const taskId of stopped) {
    const { rows: tasks } = await client.query(`select deleted_ms from ${s}.task where id = $1`, [taskId]);
    await withdraw(client, s, taskId, Math.round(nowMs), tasks[0]?.deleted_ms == null ? "paused" : "removed");
  }
  for (const kind of ["ready", "direct"]) {
    const of = rows.filter(
      (row) => row.state === runState.ready && !row.paused && (row.group_id === 0) === (kind === "direct"),
    );
    const dueMs = Math.min(...of.map((row) => Number(row.due_ms)));
    if (of.length > 0) await client.query(`select ${notifySql(s, `'${kind} ${dueMs}'`)}`);
  }
  const cancelled = new Set(rows.filter((row) => row.state === runState.claimed).map((row) => Number(row.fence)));
  await finishIn(
    client,
    s,
    released
      .filter(({ fence }) => cancelled.has(fence))
      .map((item) => ({
        ...item,
        verdict: { kind: "ended" as const, outcome: "cancelled" as const, result: null, error: null },
      })),
    nowMs,
    loose,
  );
  return rows.map((row) => Number(row.fence));
}
