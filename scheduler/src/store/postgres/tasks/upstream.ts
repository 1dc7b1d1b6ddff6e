import type { SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import { inOrder } from "../../../task/after.ts";
import type { TaskDefinition } from "../../../task/task.ts";
import { notifySql } from "../cluster/signals.ts";
import { runOutcome } from "../states.ts";

/**
 * The values of `follow.ends`. `success` and `failure` equal the numbers of the outcomes, so that the columns can be compared.
 */
export const followEnds = { success: runOutcome.succeeded, failure: runOutcome.failed, any: 2 };

/**
 * Serialises changes of which tasks follow which, so that two concurrent changes cannot form a circle. The lock is taken before
 * any row lock, so that a transaction that waits for it blocks no other transaction.
 */
export async function lockUpstream(client: SqlClient, s: string): Promise<void> {
  await client.query("select pg_advisory_xact_lock(hashtext($1))", [`${s} upstream`]);
}

/**
 * Stores which tasks a task follows. The caller holds the lock of `lockUpstream`. The followed tasks must exist: if they could be created
 * later, a concurrent creation and this transaction would not see each other.
 * @throws TASK_INVALID for an unknown task, for a circle, and if the task has a schedule of its own
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
  if (upstream.length > 0) await refuseCircle(client, s, taskId);
  const touched = [...upstream, ...before.map((row) => row.upstream_id as number)];
  await client.query(
    `update ${s}.plan p set followed = x.followed from (
       select task_id, exists (select from ${s}.follow f where f.upstream_id = o.task_id) as followed from ${s}.plan o
       where task_id = any($1) order by task_id for update) x
     where p.task_id = x.task_id and p.followed <> x.followed`,
    [touched],
  );
  // Runs that waited for a predecessor that this task no longer follows may be complete now. The signal makes the dispatcher check.
  if (before.some((row) => !upstream.includes(row.upstream_id as number)))
    await client.query(`select ${notifySql(s, "'held 0'")}`);
}

/**
 * Reads all tasks that the task follows, directly or indirectly, each only once: the number of paths between two tasks can be enormous.
 * @throws TASK_INVALID if the task is among them
 */
async function refuseCircle(client: SqlClient, s: string, taskId: number): Promise<void> {
  const { rows } = await client.query(
    `with recursive up (id) as (
       select $1::int union select f.upstream_id from up join ${s}.follow f on f.task_id = up.id)
     select t.name, array(select u.name from ${s}.follow f join ${s}.task u on u.id = f.upstream_id where f.task_id = t.id order by 1) as tasks
     from up join ${s}.task t on t.id = up.id order by t.id <> $1`,
    [taskId],
  );
  inOrder(
    rows.map(({ name, tasks }) => ({ name: name as string, after: { tasks: tasks as string[], on: "any" as const } })),
  );
}
