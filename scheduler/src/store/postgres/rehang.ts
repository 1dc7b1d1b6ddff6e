import type { SqlClient } from "../../base/change.ts";
import { runState } from "./states.ts";

/** SQL: the group number that a run gets from its task `t`; 0 means that the run must be addressed to a worker. */
const groupSql = "case when t.routed then 0 else t.group_id end";
const otherwise = "r.gate <> t.gate or t.lanes and r.limit_key is null";

/**
 * SQL condition: the columns that the run `r` copies from its task `t` are outdated. Parts of a split run are excluded. The group of an
 * addressed run is not compared while its task is routed.
 */
export const astraySql = `(r.shard is null and (${otherwise}
    or r.group_id <> case when t.routed then least(r.group_id, 0) else t.group_id end))`;

/** Gives the live runs of an edited task the task's new group and overlap policy. A claimed run keeps its slot of concurrency. */
export async function rehang(client: SqlClient, s: string, taskId: number): Promise<void> {
  // Ready runs become `held` and are admitted again, because the limit may have changed.
  const edited = `(${otherwise} or r.group_id <> ${groupSql} or t.gate > 0 and r.state = ${runState.ready})`;
  await client.query(hangSql(s, `${edited} order by r.id for update of r`, "true"), [[taskId]]);
}

/**
 * Updates runs that were created concurrently with an edit. A claimed run that another transaction is writing is skipped, because a
 * caller's own transaction may take minutes to end it; the leader's next check finds the run if it still exists.
 * @returns the number of updated runs
 */
export async function rehangAstray(client: SqlClient, s: string, taskIds: number[]): Promise<number> {
  const waiting = `r.state <> ${runState.claimed} and ${astraySql} order by r.id for update of r`;
  const claimed = `r.state = ${runState.claimed} and ${astraySql} order by r.id for update of r skip locked`;
  let found = 0;
  for (const which of [waiting, claimed])
    found += (await client.query(`${hangSql(s, which, otherwise)} returning 1`, [taskIds])).rows.length;
  return found;
}

/** Runs are locked in the order of their numbers, like in all statements that write many runs, so that no two of them can deadlock. */
const hangSql = (s: string, which: string, placed: string) => `
  with live as materialized (
    select r.id, t.gate, t.changed_ms, ${groupSql} as group_id, t.lanes, ${placed} as placed
    from ${s}.run r join ${s}.task t on t.id = r.task_id where r.task_id = any($1) and ${which})
  update ${s}.run r set gate = live.gate, group_id = live.group_id,
         limit_key = case when live.lanes then coalesce(r.limit_key, r.key, '') else r.limit_key end,
         state = case when r.state = ${runState.ready} and live.gate > 0 and r.attempt = 0 and live.placed then ${runState.held}
                      when r.state = ${runState.held} and live.gate = 0 then ${runState.ready} else r.state end,
         ready_ms = case when r.state = ${runState.held} and live.gate = 0 then live.changed_ms else r.ready_ms end
  from live where r.id = live.id`;
