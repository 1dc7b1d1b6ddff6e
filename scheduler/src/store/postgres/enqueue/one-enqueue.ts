import type { LocalClaims } from "../../../run/claim-store.ts";
import type { EnqueueWrite } from "../../../run/run-record.ts";
import { unlimitedGroupSql } from "../claims/group-limits.ts";
import { runState, takesRuns } from "../states.ts";
import { type Durability, durabilityColumn } from "./durability.ts";
import { insertRunSql, ofTask } from "./new-run.ts";
import { sourceNumber } from "./sources.ts";

/**
 * SQL: inserts one due run, claimed by a worker of this process. It does the same as `run-insert-here`, which spends more time on the setup
 * of its many parts than on their work. This statement is the only one between a call of `enqueue` and the handler's start. It returns no
 * row if an operation covers the number, or if the task is removed: then the caller uses `run-insert-here`.
 *
 * $1 task, $2 session, $3 its groups, $4 number, $5 due, $6 now, $7 source, $8 payload, $9 the number if it was drawn ahead
 */
export const oneInsertSql = (s: string, durability: Durability) => `
  with still as materialized (
    select version, followed from ${s}.plan
    where task_id = $1 and not paused and exists (select from ${s}.session where id = $2 and ${takesRuns})
    for share skip locked
  ), t as materialized (
    select t.id, ${ofTask.group_id} as group_id, t.version, t.gate, ${ofTask.limit_key} as limit_key,
           ${ofTask.priority} as priority, t.run_labels, still.followed${durabilityColumn(durability)},
           case when t.paused_ms is not null then ${runState.paused} when t.gate > 0 then ${runState.held}
                when still.version = t.version and not t.routed and not t.lanes and t.group_id = any ($3::int[])
                     and ${unlimitedGroupSql(s, "t.group_id")} then ${runState.claimed}
                else ${runState.ready} end as state
    from ${s}.task t left join still on true
    where t.id = $1 and t.deleted_ms is null and not exists (select from ${s}.operation where ended_ms is null and last_run_id >= $9)
  ), made as (
    ${insertRunSql(s, {
      id: "$4::bigint",
      task_id: "id",
      group_id: "group_id",
      version: "version",
      state: "state",
      due_ms: "$5::bigint",
      created_ms: "$6::bigint",
      priority: "priority",
      gate: "gate",
      source: "$7::smallint",
      payload: "$8::jsonb",
      limit_key: "limit_key",
      session_id: `case when state = ${runState.claimed} then $2::bigint end`,
      fence: `case when state = ${runState.claimed} then nextval('${s}.fence') end`,
      claimed_ms: `case when state = ${runState.claimed} then $6::bigint end`,
      attempt: `(state = ${runState.claimed})::int`,
      labels: "run_labels",
    })}
    from t returning id, fence)
  select made.id, true as created, t.state, t.group_id = 0 as direct, made.fence, t.version, t.priority, t.followed as linked, t.run_labels as labels, false as bounded
  from t, made`;

/** Returns the statement's parameters; null if the enqueue needs the general statement or the run is not due yet. */
export function oneValues(
  [write, another]: readonly EnqueueWrite[],
  [runId]: readonly number[],
  nowMs: number,
  { sessionId, groupIds, untilMs }: LocalClaims,
): unknown[] | null {
  if (!write || another || write.key !== null || write.priority !== null || write.limitKey != null) return null;
  if (write.overrides != null || write.expiresMs != null || write.labels != null) return null;
  const dueMs = Math.round(write.dueMs);
  if (dueMs > Math.round(untilMs)) return null;
  return [
    write.taskId,
    sessionId,
    groupIds,
    runId,
    dueMs,
    Math.round(nowMs),
    sourceNumber(write.source),
    write.payload,
    write.runId === undefined ? runId : null,
  ];
}
