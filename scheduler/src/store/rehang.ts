import type { SqlClient } from "../store.ts";

/** What a run has of its task: how it waits for a place, in which group, and in which lane. */
const groupSql = "case when t.routed then 0 else t.group_id end";

/**
 * A run `r` that has not what its task `t` is now. One that is addressed to a worker already, or is a worker's part of a
 * broadcast, is not astray.
 */
export const astraySql = `r.state <> 3 and r.shard is null and (r.gate <> t.gate or t.lanes and r.limit_key is null
    or r.group_id <> case when t.routed then least(r.group_id, 0) else t.group_id end)`;

/** Live runs of an edited task follow its group and its overlap policy; a claimed one keeps its place. */
export async function rehang(client: SqlClient, s: string, taskId: number): Promise<void> {
  // What is ready goes back to be given a place again: the limit may be another one now.
  const edited = `r.gate <> t.gate or r.group_id <> ${groupSql} or t.gate > 0 and r.state = 2 or t.lanes and r.limit_key is null`;
  await client.query(hangSql(s, edited), [[taskId]]);
}

/** Those that were made beside the edit. @returns how many there were */
export async function rehangAstray(client: SqlClient, s: string, taskIds: number[]): Promise<number> {
  const { rows } = await client.query(`${hangSql(s, astraySql)} returning 1`, [taskIds]);
  return rows.length;
}

/** Whoever writes many runs does it in the order of their numbers, so that no two can wait for each other. */
const hangSql = (s: string, which: string) => `
  with live as materialized (
    select r.id, t.gate, ${groupSql} as group_id, t.lanes from ${s}.run r join ${s}.task t on t.id = r.task_id
    where r.task_id = any($1) and (${which}) order by r.id for update of r)
  update ${s}.run r set gate = live.gate, group_id = live.group_id,
         limit_key = case when live.lanes then coalesce(r.limit_key, r.key, '') else r.limit_key end,
         state = case when r.state = 2 and live.gate > 0 and r.attempt = 0 then 0 when r.state = 0 and live.gate = 0 then 2 else r.state end
  from live where r.id = live.id`;
