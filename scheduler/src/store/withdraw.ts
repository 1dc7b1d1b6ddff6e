import type { SqlClient } from "../store.ts";

export type Withdrawal = "edited" | "paused" | "removed";

/**
 * Takes back, in the caller's transaction, what is planned and not claimed. A slot whose time has not come leaves no
 * trace, so it can be planned anew; one that came due and was not claimed ends as skipped when its task is stopped, and
 * stays when it is only edited. Runs that people enqueued wait out a pause, and are cancelled with their task.
 */
export async function withdraw(
  client: SqlClient,
  s: string,
  taskId: number,
  now: number,
  how: Withdrawal,
): Promise<void> {
  await client.query(
    `with gone as (
       delete from ${s}.run where task_id = $1 and source = 1 and state in (0, 2) and attempt = 0 and slot_ms > $2
       returning slot_ms)
     delete from ${s}.slot l using gone where l.task_id = $1 and l.slot_ms = gone.slot_ms`,
    [taskId, now],
  );
  if (how === "edited") return;
  if (how === "paused") {
    await client.query(
      `update ${s}.run set state = 1 where task_id = $1 and state in (0, 2) and (source <> 1 or attempt > 0)`,
      [taskId],
    );
  }
  await client.query(
    `with gone as (
       delete from ${s}.run where task_id = $1 and state in (0, 1, 2, 4) and ($3 = 'removed' or (source = 1 and attempt = 0)) returning *),
     told as (
       insert into ${s}.run_history (id, due_ms, slot_ms, created_ms, ended_ms, task_id, version, attempt, outcome, priority,
                                     source, key, payload, parent_id, inputs, error)
       select id, due_ms, slot_ms, created_ms, $2, task_id, version, attempt, case when source = 1 and attempt = 0 then 3 else 2 end,
              priority, source, key, payload, parent_id, inputs, jsonb_build_object('code', 'CANCELLED', 'message', 'task ' || $3) from gone),
     marked as (
       update ${s}.slot l set outcome = 2, reason = 'task ' || $3 from gone
       where gone.attempt = 0 and l.task_id = gone.task_id and l.slot_ms = gone.slot_ms)
     insert into ${s}.tally_delta (task_id, skipped, cancelled)
     select $1, count(*) filter (where source = 1 and attempt = 0), count(*) filter (where source <> 1 or attempt > 0) from gone
     having count(*) > 0`,
    [taskId, now, how],
  );
}
