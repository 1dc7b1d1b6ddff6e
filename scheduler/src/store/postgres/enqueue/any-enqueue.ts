import type { EnqueueWrite } from "../../../run/run-record.ts";
import type { RunLabels } from "../../../task/kinds/run-labels.ts";
import { unlimitedGroupSql } from "../claims/group-limits.ts";
import { notifySql } from "../cluster/signals.ts";
import { numbers, texts } from "../columns.ts";
import { runState, takesRuns } from "../states.ts";
import { type Durability, durabilityColumn, foundColumn } from "./durability.ts";
import { insertRunSql, ofTask, withTaskLabels } from "./new-run.ts";
import { sourceNumber } from "./sources.ts";

const enqueued = sourceNumber("enqueue");

/** The variant of the statement. A variant leaves out the parts that its runs do not need, and so costs less. */
export interface Shape {
  /** True if some runs have keys. An ON CONFLICT clause adds one record per row to the write-ahead log. */
  keyed: boolean;
  /** True if a worker of this process claims due runs in the same statement. */
  here: boolean;
  durability: Durability;
}

/**
 * SQL: inserts runs. If an unfinished run already has the key, no new run is inserted, and the caller gets that run instead. If one of the
 * tasks is removed, no run at all is inserted, so that the caller can send the other writes again.
 *
 * `here`: plain due runs are inserted as claims of this session, so that each is written only once and not signalled. A pause or an edit of
 * a task locks its plan's row. A shared lock on this row ensures that either the pause or edit sees the claim and recalls it, or the claim
 * is not made. If another transaction holds the row at that moment, the run is inserted without a claim and is claimed later.
 */
export const anyInsertSql = (s: string, { keyed, here, durability }: Shape) => `
  with bounded as materialized (
    select exists (select from ${s}.operation where ended_ms is null and last_run_id >= $11) as yes
  ), i as (
    select coalesce(i.task_id, ($10::int[])[1]) as task_id, i.payload, i.due_ms, i.key, i.priority, coalesce(i.source, ${enqueued}) as source,
           i.limit_key, i.overrides, i.expires_ms, i.labels, i.place, coalesce(i.drawn, nextval('${s}.run_id')) as id
    from unnest($1::int[], $2::jsonb[], $3::bigint[], $4::text[], $5::smallint[], $6::smallint[], $8::text[], $9::bigint[], $12::jsonb[], $13::bigint[], $14::jsonb[])
      with ordinality as i (task_id, payload, due_ms, key, priority, source, limit_key, drawn, overrides, expires_ms, labels, place)
  ), ${
    here
      ? `still as materialized (
    select task_id, paused, version, followed from ${s}.plan
    where task_id = any ($10::int[]) and exists (select from ${s}.session where id = $15 and ${takesRuns})
    order by task_id for share skip locked
  ), `
      : ""
  }t as materialized (
    select t.id, ${ofTask.group_id} as group_id, t.version, t.gate, t.lanes, t.run_labels, ${ofTask.state} as state, ${ofTask.priority} as priority${durabilityColumn(durability, allRelaxedSql(s))}
           ${
             here
               ? `, coalesce(t.paused_ms is null and t.gate = 0 and not t.routed and not t.lanes and not still.paused
           and still.version = t.version and t.group_id = any ($16::int[]) and ${unlimitedGroupSql(s, "t.group_id")}, false) as free, still.followed`
               : ""
           }
    from ${s}.task t ${here ? "left join still on still.task_id = t.id" : ""}
    where t.id = any ($10::int[]) and t.deleted_ms is null
  ), made as (
    ${insertRunSql(s, {
      id: "i.id",
      group_id: "t.group_id",
      state: here ? `case when mine then ${runState.claimed} else t.state end` : "t.state",
      due_ms: "i.due_ms",
      created_ms: "$7",
      priority: "coalesce(i.priority, t.priority)",
      source: "i.source",
      key: "i.key",
      payload: "i.payload",
      limit_key: "coalesce(i.limit_key, case when t.lanes then coalesce(i.key, '') end)",
      overrides: "i.overrides",
      expires_ms: "i.expires_ms",
      labels: withTaskLabels("i.labels"),
      ...(here ? mine(s) : {}),
    })}
    from i join t on t.id = i.task_id ${here ? "cross join lateral (select t.free and i.due_ms <= $17 and i.place <= $18 as mine) m" : ""}
    where (select count(*) from t) = cardinality($10::int[]) and not (select yes from bounded)
    order by i.place
    ${keyed ? "on conflict (task_id, key) where key is not null do nothing" : ""}
    returning id, task_id, due_ms, state, group_id, fence, version, priority${here ? ", labels" : ""}
  )
  ${
    keyed || here
      ? `select coalesce(made.id${keyed ? ", r.id" : ""}) as id, made.id is not null as created, made.state, made.group_id = 0 as direct, made.fence, made.version, made.priority,
         ${here ? "made.labels, t.followed" : "false"} as linked, (select yes from bounded) as bounded, ${here ? "null" : "pg_current_xact_id()::text"} as xid
         ${here ? "" : `, case when $15::bigint is not null and made.state = ${runState.ready} then ${notifySql(s, toldOf("made.group_id = 0"))} end as told`}
         ${keyed ? foundColumn(s, durability, "made.id is null and r.id is not null") : ""}
  from i left join made on made.id = i.id ${keyed ? `left join ${s}.run r on r.task_id = i.task_id and r.key = i.key` : ""}
       ${here ? "left join t on t.id = i.task_id" : ""}
  order by i.place`
      : `select count(*) as made, array_agg(distinct task_id) filter (where state = ${runState.held}) as held, array_agg(distinct task_id) filter (where state = ${runState.paused}) as paused, (select yes from bounded) as bounded, ${earliest("group_id <> 0")} as ready, ${earliest("group_id = 0")} as direct,
         case when $15::bigint is not null and count(*) filter (where state = ${runState.ready}) > 0 then ${notifySql(s, toldOf("bool_or(group_id = 0)"))} end as told from made`
  }`;

/** SQL: true if this and all other tasks of the statement are relaxed. */
const allRelaxedSql = (s: string) =>
  `t.relaxed and not exists (select from ${s}.task x where x.id = any ($10::int[]) and not x.relaxed)`;

/** SQL: additional columns of a run that is inserted as a claim of the session $15. */
const mine = (s: string) => ({
  session_id: "case when mine then $15::bigint end",
  fence: `case when mine then nextval('${s}.fence') end`,
  claimed_ms: "case when mine then $7::bigint end",
  attempt: "mine::int",
});

/** SQL: the text of the signal that the statement itself sends. */
const toldOf = (direct: string) => `case when ${direct} then 'direct ' else 'ready ' end || $15::bigint`;

const earliest = (which: string) => `min(due_ms) filter (where state = ${runState.ready} and ${which})`;

/** The statement's result for one enqueue. */
export interface Made {
  id: number | null;
  created: boolean;
  state: number | null;
  /** True if the run must be addressed to a worker. */
  direct: boolean | null;
  fence: number | null;
  version: number;
  priority: number;
  linked: boolean;
  /** The run's labels, if the statement claimed the run. */
  labels?: RunLabels | null;
  bounded: boolean;
  /** The transaction's number, if the statement may be in a caller's transaction. */
  xid?: string | null;
}

/** The statement's result for all enqueues together, if none of them has a key and the statement claims no run. */
export interface MadeTogether {
  made: number;
  held: number[] | null;
  paused: number[] | null;
  bounded: boolean;
  /** The earliest due times of new runs: `ready` of those that workers can claim, `direct` of those that must be addressed first. */
  ready: number | null;
  direct: number | null;
}

/**
 * Returns the statement's parameters.
 * @param last for a statement that claims: $15 session, $16 its groups, $17 due until, $18 the number of free slots; for other statements:
 * $15 the due time of its only run if the statement is to send the signal, else null
 */
export function anyValues(
  writes: EnqueueWrite[],
  nowMs: number,
  ids: number[] | null,
  last: unknown[] = [null],
): unknown[] {
  const taskIds = [...new Set(writes.map(({ taskId }) => taskId))];
  // The number in $11 decides whether an operation covers these runs. Runs whose number the caller gave are inserted in any case, so these
  // numbers do not count.
  const own = ids?.filter((_, place) => writes[place]?.runId === undefined) ?? [];
  return [
    taskIds.length === 1 ? null : numbers(writes.map(({ taskId }) => taskId)),
    texts(writes.map(({ payload }) => payload)),
    numbers(writes.map(({ dueMs }) => Math.round(dueMs))),
    texts(writes.map(({ key }) => key)),
    numbers(writes.map(({ priority }) => priority)),
    numbers(writes.map(({ source }) => (source === "enqueue" ? null : sourceNumber(source)))),
    Math.round(nowMs),
    texts(writes.map(({ limitKey }) => limitKey ?? null)),
    ids && numbers(ids),
    numbers(taskIds),
    // The first number is the lowest, because the numbers are in rising order.
    own[0] ?? null,
    texts(writes.map(({ overrides }) => (overrides == null ? null : JSON.stringify(overrides)))),
    numbers(writes.map(({ expiresMs }) => (expiresMs == null ? null : Math.round(expiresMs)))),
    texts(writes.map(({ labels }) => (labels == null ? null : JSON.stringify(labels)))),
    ...last,
  ];
}
