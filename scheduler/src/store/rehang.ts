import type { SqlClient } from "../store.ts";

/** Live runs of an edited task follow its group and its overlap policy; a claimed one keeps its place. */
export async function rehang(
  client: SqlClient,
  s: string,
  taskId: number,
  gate: number,
  groupId: number,
  keyed: boolean,
): Promise<void> {
  // Whoever writes many runs does it in the order of their numbers, so that no two can wait for each other. What is
  // ready goes back to be given a place again: the limit may be another one now.
  await client.query(
    `with live as materialized (
       select id from ${s}.run where task_id = $1 and (gate <> $2 or group_id <> $3 or ($2 > 0 and state = 2) or ($4 and limit_key is null))
       order by id for update)
     update ${s}.run r set gate = $2, group_id = $3, limit_key = case when $4 then coalesce(limit_key, key, '') else limit_key end,
            state = case when state = 2 and $2 > 0 and attempt = 0 then 0 when state = 0 and $2 = 0 then 2 else state end
     from live where r.id = live.id`,
    [taskId, gate, groupId, keyed],
  );
}
