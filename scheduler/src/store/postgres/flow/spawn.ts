import { CarillonError } from "../../../base/errors.ts";
import { limits } from "../../../base/limits.ts";
import type { AskingRun, ChildWrite } from "../../../run/flow.ts";
import type { Enqueued } from "../../../run/run-record.ts";
import { settleGates } from "../claims/gates.ts";
import { notifyReadySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { insertRunSql } from "../enqueue/new-run.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { runState } from "../states.ts";

const child = sourceNumber("child");

/**
 * SQL: selects a parent's children. All runs of a chain have the same key, and the last of them represents the chain. The first part of a
 * split child has the key and represents the child.
 */
export const childrenSql = (s: string, parent: string) => `
  select distinct on (task_id, key) id, task_id, key from (
    select id, task_id, key from ${s}.run where parent_id = ${parent} and source = ${child} and key is not null
    union all select id, task_id, key from ${s}.run_history where parent_id = ${parent} and source = ${child} and key is not null) c
  order by task_id, key, id desc`;

const spawnSql = (s: string) => `
  with i as (
    select nextval('${s}.run_id') as id, i.* from unnest($3::int[], $4::jsonb[], $5::text[]) with ordinality as i (task_id, payload, key, place)
  ), known as materialized (${childrenSql(s, "$1")}),
  made as (
    ${insertRunSql(s, {
      id: "i.id",
      due_ms: "$2",
      created_ms: "$2",
      source: `${child}`,
      key: "i.key",
      payload: "i.payload",
      limit_key: "case when t.lanes then i.key end",
      parent_id: "$1",
      slot_ms: "$6",
      origin: "$7",
    })}
    from i join ${s}.task t on t.id = i.task_id and t.deleted_ms is null
    where not exists (select from known k where k.task_id = i.task_id and k.key = i.key)
    order by i.place
    on conflict (task_id, key) where key is not null do nothing returning id, task_id, key, state, due_ms, group_id
  ), told as (
    ${notifyReadySql(s, `made where state = ${runState.ready}`)}
  )
  select coalesce(made.id, known.id, r.id) as id, made.id is not null as created, made.state = ${runState.held} as held, i.task_id as "taskId",
         (select count(*) from known) + (select count(*) from made) as children, (select count(*) from told)
  from i left join made on made.task_id = i.task_id and made.key = i.key
         left join known on known.task_id = i.task_id and known.key = i.key
         left join ${s}.run r on r.task_id = i.task_id and r.key = i.key
  order by i.place`;

export async function spawn(
  database: Database,
  parent: AskingRun,
  children: ChildWrite[],
  nowMs: number,
): Promise<Enqueued[]> {
  const s = database.schema;
  const now = Math.round(nowMs);
  const made = await database.persist(() =>
    database.transaction(async (client) => {
      // The lock prevents another attempt of the parent from spawning at the same time.
      const { rows: parents } = await client.query(
        `select slot_ms, coalesce(slot_ms, origin, id) as origin from ${s}.run where id = $1 and fence = $2 and state = ${runState.claimed} for no key update`,
        [parent.runId, parent.fence],
      );
      if (!parents[0])
        throw new CarillonError("FENCE_STALE", `run ${parent.runId} is no longer this worker's, so it spawns nothing`);
      const { rows } = await client.query(spawnSql(s), [
        parent.runId,
        now,
        children.map(({ taskId }) => taskId),
        children.map(({ payload }) => payload),
        children.map(({ key }) => `${parent.runId}/${key}`),
        parents[0].slot_ms,
        parents[0].origin,
      ]);
      if (rows.some(({ id }) => id === null)) throw unknownTask("the task of a child was removed");
      if (Number(rows[0]?.children ?? 0) > limits.children)
        throw new CarillonError(
          "OPTION_INVALID",
          `run ${parent.runId} would have more than ${limits.children} children`,
        );
      return rows as unknown as (Enqueued & { id: number; held: boolean | null; taskId: number })[];
    }),
  );
  // If the process crashes before this, a run stays held although a slot is free, until the dispatcher's periodic check finds it.
  await admit(
    database,
    made.filter(({ held }) => held).map(({ taskId }) => taskId),
    nowMs,
  );
  return made.map(({ id, created }) => ({ runId: Number(id), created }));
}

async function admit(database: Database, taskIds: number[], nowMs: number): Promise<void> {
  if (taskIds.length === 0) return;
  await database.persist(() =>
    database.transaction((client) => settleGates(client, database.schema, taskIds, nowMs, false)),
  );
}

export const unknownTask = (what: string) =>
  new CarillonError("TASK_UNKNOWN", what, { hint: "See `carillon tasks list`. A task exists once it is stored." });
