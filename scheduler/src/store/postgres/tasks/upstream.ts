import type { SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import { circle } from "../../../task/after.ts";
import type { TaskDefinition } from "../../../task/task.ts";
import { runOutcome } from "../states.ts";

/** `follow.ends`: the first two are those outcomes' own numbers, so that an outcome is compared with them. */
export const followEnds = { success: runOutcome.succeeded, failure: runOutcome.failed, any: 2 };

/**
 * One at a time save what they come after, so that no two make a circle together. Taken before any row, for it is waited
 * for with none in hand.
 */
export async function lockUpstream(client: SqlClient, s: string): Promise<void> {
  await client.query("select pg_advisory_xact_lock(hashtext($1))", [`${s} upstream`]);
}

/**
 * Keeps what a task comes after, under that lock. The tasks must be there: one that is made later could be made at the same
 * moment, and neither would see the other. @throws TASK_INVALID for an unknown task and for a circle
 */
export async function saveUpstream(
  client: SqlClient,
  s: string,
  taskId: number,
  { name, after, schedule }: TaskDefinition,
): Promise<void> {
  if (after && schedule.type !== "manual")
    throw new CarillonError("TASK_INVALID", `task ${name}: it has a schedule and comes after another task`, {
      hint: "Leave out one of the two, or make it two tasks.",
    });
  const { rows } = await client.query(
    `select id, name from ${s}.task where name = any($1) and deleted_ms is null and version > 0`,
    [after?.tasks ?? []],
  );
  const known = new Set(rows.map((row) => row.name));
  const unknown = after?.tasks.find((one) => !known.has(one));
  if (unknown !== undefined)
    throw new CarillonError(
      "TASK_INVALID",
      `task ${name}: it comes after ${JSON.stringify(unknown)}, which is no task`,
      {
        hint: "Define that one in the same process, or start first what defines it.",
      },
    );
  const { rows: before } = await client.query(`delete from ${s}.follow where task_id = $1 returning upstream_id`, [
    taskId,
  ]);
  const upstream = rows.map((row) => row.id as number);
  await client.query(
    `insert into ${s}.follow (upstream_id, task_id, ends, several) select id, $2, $3, $4 from unnest($1::int[]) as u (id)`,
    [upstream, taskId, followEnds[after?.on ?? "success"], upstream.length > 1],
  );
  const { rows: circles } = await client.query(
    `with recursive up (id, path) as (
       select upstream_id, array[task_id, upstream_id] from ${s}.follow where task_id = $1
       union all select f.upstream_id, up.path || f.upstream_id from up join ${s}.follow f on f.task_id = up.id where up.id <> $1)
     select array(select t.name from unnest(up.path) with ordinality as p (id, n) join ${s}.task t on t.id = p.id order by p.n) as names
     from up where id = $1 limit 1`,
    [taskId],
  );
  if (circles[0]) throw circle(circles[0].names as string[]);
  const touched = [...upstream, ...before.map((row) => row.upstream_id as number)];
  await client.query(
    `update ${s}.plan p set followed = x.followed from (
       select task_id, exists (select from ${s}.follow f where f.upstream_id = o.task_id) as followed from ${s}.plan o
       where task_id = any($1) order by task_id for update) x
     where p.task_id = x.task_id and p.followed <> x.followed`,
    [touched],
  );
}
