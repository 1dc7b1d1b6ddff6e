import type { SqlClient } from "../../../base/change.ts";
import type { TaskDefinition } from "../../../task/task.ts";
import { runState } from "../states.ts";
import { stepEnd, stepMsOf } from "./admission.ts";
import { gates } from "./gates.ts";

type Rate = NonNullable<TaskDefinition["rate"]>;

interface Retried {
  id: number;
  task_id: number;
  due_ms: number;
  key: string;
  definition: TaskDefinition;
}

/** SQL condition: each attempt of a run of the task `t` takes a token, so a retry needs one too. */
export const rated = `t.gate = ${gates.paced} and t.definition ? 'rate'`;

/**
 * Books tokens for retries of rate-limited tasks: each at the first time, not before the retry's due time, at which no time span around it
 * exceeds the rate. The run becomes due at that time and stays `ready`, so that it keeps its slots and its order. If it were `held` until a
 * token is free, its key's slot would go to the next run.
 * @param client in the transaction that made the runs ready
 * @param runIds runs of any tasks; those without a rate are skipped
 */
export async function bookTokens(client: SqlClient, s: string, runIds: number[]): Promise<void> {
  const { rows } = await client.query(
    `select r.id, r.task_id, r.due_ms, t.definition, case when t.definition->'rate'->>'byKey' = 'true' then coalesce(r.limit_key, '') else '' end as key
     from ${s}.run r join ${s}.task t on t.id = r.task_id where r.id = any($1) and r.state = ${runState.ready} and ${rated} order by r.due_ms, r.id`,
    [runIds],
  );
  if (rows.length === 0) return;
  const retried = rows as unknown as Retried[];
  // While the gates are locked, the counts below stay true.
  await lockGates(
    client,
    s,
    retried.map(({ task_id }) => task_id),
  );
  for (const run of retried) {
    const atMs = await book(client, s, run, run.definition.rate as Rate);
    if (atMs > Number(run.due_ms)) await client.query(`update ${s}.run set due_ms = $2 where id = $1`, [run.id, atMs]);
  }
}

/** Locks gates in the order that all transactions use. */
export async function lockGates(client: SqlClient, s: string, taskIds: number[]): Promise<void> {
  await client.query(`select from ${s}.gate where task_id = any($1) order by task_id for update`, [
    [...new Set(taskIds)],
  ]);
}

/**
 * Books the token of one retry and returns its time in ms. Candidates are the retry's due time and the times at which another token leaves
 * the time span, earliest first. Tokens booked for the future count like past ones, because the span extends in both directions.
 */
async function book(client: SqlClient, s: string, run: Retried, rate: Rate): Promise<number> {
  const values = [run.task_id, run.key, Math.round(Number(run.due_ms)), rate.perMs, rate.limit, stepMsOf(rate)];
  const { rows } = await client.query(
    `select at::float8 from (
       select at from (
         select $3::bigint as at union
         select at_ms + $4::bigint from ${s}.admission where task_id = $1 and key = $2 and at_ms > $3::bigint - $4::bigint) x
       order by at offset 0) candidate
     where (select coalesce(sum(a.count), 0) from ${s}.admission a
            where a.task_id = $1 and a.key = $2 and a.at_ms > at - $4::bigint and a.at_ms < at + $4::bigint + $6::bigint) < $5::int
     limit 1`,
    values,
  );
  // A row always exists, because a time span after the last booked token is empty.
  const atMs = rows[0]?.at as number;
  await client.query(
    `insert into ${s}.admission as a (task_id, key, at_ms, count) values ($1, $2, $3, 1)
     on conflict (task_id, key, at_ms) do update set count = a.count + 1`,
    [run.task_id, run.key, stepEnd(rate, atMs)],
  );
  return atMs;
}
