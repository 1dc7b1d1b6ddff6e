import type { EnqueueWrite, LocalClaims } from "../store.ts";
import { unlimitedGroupSql } from "./group-limits.ts";
import { notifySql } from "./signals.ts";
import { sourceNumber } from "./sources.ts";

/**
 * One run that is due, for a worker of this process: what `run-insert-here` does, said for this case alone. Of that
 * statement's time more goes into its many parts being set up than into what they do; it is the whole way from a call
 * to the handler's start. Nothing comes back when an operation has this number, or the task is gone: then the other is asked.
 *
 * $1 task, $2 session, $3 its groups, $4 number, $5 due, $6 now, $7 source, $8 payload, $9 the number if it was drawn ahead
 */
export const oneInsertSql = (s: string) => `
  with still as materialized (
    select version, followed from ${s}.plan
    where task_id = $1 and not paused and exists (select from ${s}.session where id = $2 and ended_ms is null)
    for share skip locked
  ), t as materialized (
    select t.id, case when t.routed then 0 else t.group_id end as group_id, t.version, t.gate, case when t.lanes then '' end as limit_key,
           (t.definition->>'priority')::smallint as priority, still.followed,
           case when t.paused_ms is not null then 1 when t.gate > 0 then 0
                when still.version = t.version and not t.routed and not t.lanes and t.group_id = any ($3::int[])
                     and ${unlimitedGroupSql(s, "t.group_id")} then 3
                else 2 end as state
    from ${s}.task t left join still on true
    where t.id = $1 and t.deleted_ms is null and not exists (select from ${s}.operation where ended_ms is null and last_run_id >= $9)
  ), made as (
    insert into ${s}.run (id, task_id, group_id, version, state, due_ms, created_ms, priority, gate, after_end, source, payload, limit_key,
                          session_id, fence, claimed_ms, attempt)
    select $4::bigint, id, group_id, version, state, $5::bigint, $6::bigint, priority, gate, false, $7::smallint, $8::jsonb, limit_key,
           case when state = 3 then $2::bigint end, case when state = 3 then nextval('${s}.fence') end,
           case when state = 3 then $6::bigint end, (state = 3)::int
    from t returning id, fence)
  select made.id, true as created, t.state, made.fence, t.version, t.priority, t.followed as linked, false as bounded,
         case when t.state = 2 then ${notifySql(s, "case when t.group_id = 0 then 'direct ' else 'ready ' end || $5::bigint")} end as told
  from t, made`;

/** The statement's values; null where something else is asked of it, or the run is not for now. */
export function oneValues(
  [write, another]: readonly EnqueueWrite[],
  [runId]: readonly number[],
  nowMs: number,
  { sessionId, groupIds, untilMs }: LocalClaims,
): unknown[] | null {
  if (!write || another || write.key !== null || write.priority !== null || write.limitKey != null) return null;
  const dueMs = Math.round(write.dueMs);
  if (dueMs > Math.round(untilMs)) return null;
  return [
    ...[write.taskId, sessionId, groupIds, runId, dueMs, Math.round(nowMs), sourceNumber(write.source), write.payload],
    write.runId === undefined ? runId : null,
  ];
}
