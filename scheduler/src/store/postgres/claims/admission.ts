import type { SqlClient } from "../../../base/change.ts";
import type { TaskDefinition } from "../../../task/task.ts";
import { notifyReadySql, notifySql } from "../cluster/signals.ts";
import { runState } from "../states.ts";
import { earliest, prioritiesSql } from "./ready.ts";

/** The most runs of one task that one transaction admits; if more runs are left, the dispatcher is signalled at once. */
const runsPerStep = 1_000;
const keysPerStep = 500;
const forgottenPerStep = 1_000;
/** A rate's time span is divided into about this many steps. Rates with a limit up to this number are exact to the millisecond instead. */
const stepsPerSpan = 200;

interface Paced {
  task_id: number;
  gate_limit: number | null;
  definition: TaskDefinition;
  lanes: boolean;
  routed: boolean;
  cursor: string;
}

interface Admitted {
  admitted: number;
  /** The number of keys that this statement read, and the last of these keys. */
  keys: number;
  last_key: string | null;
  last_admitted: string | null;
  next_ms: number | null;
}

/**
 * Moves due runs of tasks with a limit per key, a limit per worker or a rate from `held` to `ready`, as far as the task's limits and its
 * rate allow. (The router enforces the limit per worker.) The caller holds the locks of the tasks' gate rows, so the counts read here stay
 * true until the caller commits.
 *
 * Only due runs are admitted, because a slot or token given to a future run would be missing for a due one. Retries are an exception: a
 * retry keeps its slot, and its token is booked in advance (retry-tokens.ts).
 */
export async function admitPaced(client: SqlClient, s: string, taskIds: number[], now: number): Promise<void> {
  const { rows } = await client.query(
    `select t.id as task_id, t.gate_limit, t.definition, t.lanes, t.routed, g.cursor
     from ${s}.task t join ${s}.gate g on g.task_id = t.id
     where t.id = any($1) and t.paused_ms is null and t.deleted_ms is null order by t.id`,
    [taskIds],
  );
  for (const task of rows as unknown as Paced[]) await admit(client, s, task, now);
}

async function admit(client: SqlClient, s: string, task: Paced, now: number): Promise<void> {
  const { rate } = task.definition;
  if (rate) await forget(client, s, task.task_id, now - rate.perMs);
  let room = Math.min(await placesLeft(client, s, task), runsPerStep);
  let nextMs: number | null = null;
  const tokens = rate && !rate.byKey ? () => tokensLeft(client, s, task.task_id, rate, now) : null;
  let left = await tokens?.();
  if (left) room = Math.min(room, left.tokens);
  if (room > 0) {
    if (task.lanes) nextMs = await admitByKey(client, s, task, room, now);
    else if ((await admitInOrder(client, s, task, room, now)) === runsPerStep) nextMs = now;
    left = await tokens?.();
  }
  if (left && left.tokens <= 0) nextMs = earliest([nextMs, left.nextMs]);
  // The dispatcher gets the earlier of two times: `nextMs`, if a due run still waits, and the due time of the next held run that is not
  // due yet.
  await client.query(
    `with due as (
       select case when $3::bigint is not null and exists (
                select from ${s}.run where task_id = $1 and state = ${runState.held} and gate > 0 and due_ms <= $2) then $3::bigint end as ms
       union all (
         select due_ms from ${s}.run where task_id = $1 and state = ${runState.held} and gate > 0 and due_ms > $2 order by due_ms limit 1))
     select ${notifySql(s, "'held ' || min(ms)")} from due having min(ms) is not null
     union all
     select ${notifySql(s, "'direct ' || $2::bigint")} where $4 and exists (
       select from ${s}.run where task_id = $1 and state = ${runState.ready} and group_id = 0)`,
    [task.task_id, now, nextMs, task.routed],
  );
}

async function placesLeft(client: SqlClient, s: string, { task_id, gate_limit }: Paced): Promise<number> {
  if (gate_limit === null) return runsPerStep;
  const { rows } = await client.query(
    `select count(*)::int as taken from ${s}.run where task_id = $1 and gate > 0 and state in (${runState.ready}, ${runState.claimed})`,
    [task_id],
  );
  return gate_limit - (rows[0]?.taken as number);
}

/**
 * Returns how many tokens of the rate can be used now without exceeding the limit in any time span that contains the present, counting
 * tokens booked for retries. `nextMs` is the time at which the next token becomes available; null if no token is in use.
 */
async function tokensLeft(
  client: SqlClient,
  s: string,
  taskId: number,
  rate: NonNullable<Paced["definition"]["rate"]>,
  now: number,
): Promise<{ tokens: number; nextMs: number | null }> {
  const { rows } = await client.query(
    `select coalesce(sum(count), 0)::int as used, min(at_ms)::float8 as first from ${s}.admission
     where task_id = $1 and key = '' and at_ms > $2 and at_ms < $3`,
    [taskId, now - rate.perMs, now + rate.perMs + stepMsOf(rate)],
  );
  const first = rows[0]?.first as number | null;
  return { tokens: rate.limit - (rows[0]?.used as number), nextMs: first === null ? null : first + rate.perMs };
}

async function forget(client: SqlClient, s: string, taskId: number, untilMs: number): Promise<void> {
  await client.query(
    `delete from ${s}.admission where ctid = any(array(
       select ctid from ${s}.admission where task_id = $1 and at_ms <= $2 order by at_ms limit ${forgottenPerStep}))`,
    [taskId, untilMs],
  );
}

/** Returns the end of the step that contains `now`. Tokens are counted at this time, so that they may expire late but never early. */
export function stepEnd(rate: TaskDefinition["rate"], now: number): number {
  const stepMs = stepMsOf(rate);
  return stepMs === 0 ? now : Math.ceil(now / stepMs) * stepMs;
}

/** The length of one step of the rate's span in ms; 0 if tokens are counted exactly to the millisecond. */
export const stepMsOf = (rate: TaskDefinition["rate"]): number =>
  !rate || rate.limit <= stepsPerSpan ? 0 : Math.max(1, Math.floor(rate.perMs / stepsPerSpan));

const movedSql = (s: string) => `
     moved as (
       update ${s}.run r set state = ${runState.ready}, ready_ms = $2 from picked where r.id = picked.id and r.state = ${runState.held}
       returning r.due_ms, r.group_id, r.limit_key),
     told as (${notifyReadySql(s, "moved")})`;

const countedSql = (s: string, key: string, at: string, when: string) => `
     counted as (
       insert into ${s}.admission as a (task_id, key, at_ms, count) select $1, ${key}, ${at}, count(*) from moved where ${when}
       group by 2 having count(*) > 0 order by 2
       on conflict (task_id, key, at_ms) do update set count = a.count + excluded.count)`;

/**
 * Selects the due runs of a task that wait for a slot, as (id, priority, due_ms): for each priority the runs with the earliest due times,
 * locked; rows that other transactions have locked are skipped. $2 is the time. The statement uses probes of the index by priority, so its
 * cost does not depend on how many runs wait. That index does not contain the run number, and sorting by due time and number would read all
 * runs, so a first query finds the due time up to which there are enough runs. The condition leaves out `gate`, because with it the planner
 * would use another index, in which each priority scans the runs of all priorities.
 */
export const heldDueSql = (s: string, taskId: string, most: string) => {
  const held = `${s}.run where task_id = ${taskId} and state = ${runState.held} and priority = p.level`;
  return `
       select due.* from unnest(${prioritiesSql}) as p (level) cross join lateral (
         select max(due_ms) as due_ms from (select due_ms from ${held} and due_ms <= $2 order by due_ms limit ${most}) x) enough
         cross join lateral (
         select id, priority, due_ms from ${held} and due_ms <= enough.due_ms
         order by due_ms, id limit ${most} for update skip locked) due`;
};

async function admitInOrder(client: SqlClient, s: string, task: Paced, room: number, now: number): Promise<number> {
  const { rows } = await client.query(
    `with picked as materialized (
       select id from (${heldDueSql(s, "$1", "$3::int")}) h order by priority desc, due_ms, id limit $3::int),
     ${movedSql(s)},
     ${countedSql(s, "''", "$4", "$5")}
     select (select count(*) from moved)::int as admitted, (select count(*) from told)`,
    [task.task_id, now, room, stepEnd(task.definition.rate, now), task.definition.rate !== undefined],
  );
  return rows[0]?.admitted as number;
}

/**
 * Admits held runs key by key, starting after the key at which the last call stopped, so that the keys share few free slots fairly. A key
 * without a free slot costs one probe, however many of its runs wait.
 * @returns the time at which more runs may be admitted, ms; null if unknown or never
 */
async function admitByKey(
  client: SqlClient,
  s: string,
  task: Paced,
  room: number,
  now: number,
): Promise<number | null> {
  const { limit, rate } = task.definition;
  const text = `
     with recursive lane (key, n) as (
       (select limit_key, 1 from ${s}.run where task_id = $1 and state = ${runState.held} and limit_key is not null
          and (limit_key > $4 or $4 = '') order by limit_key limit 1)
       union all
       select (select r.limit_key from ${s}.run r where r.task_id = $1 and r.state = ${runState.held} and r.limit_key is not null
                 and r.limit_key > lane.key order by r.limit_key limit 1), n + 1
       from lane where lane.key is not null and n <= ${keysPerStep}),
     active as materialized (
       select limit_key, count(*) as runs from ${s}.run where task_id = $1 and state in (${runState.ready}, ${runState.claimed}) and gate > 0 group by limit_key),
     room as materialized (
       select lane.key, lane.n, token.next_ms, $6::int - token.used as tokens,
              least(coalesce($5::int - coalesce(active.runs, 0), $3), coalesce($6::int - token.used, $3)) as places
       from lane left join active on active.limit_key = lane.key
         left join lateral (
           select coalesce(sum(a.count), 0) as used, min(a.at_ms) + $7::bigint as next_ms from ${s}.admission a
           where $6::int is not null and a.task_id = $1 and a.key = lane.key and a.at_ms > $2 - $7::bigint
             and a.at_ms < $2 + $7::bigint + $11::bigint) token on true
       where lane.key is not null and lane.n <= ${keysPerStep}),
     picked as materialized (
       select pick.id, room.n, room.key from room cross join lateral (
         select id from ${s}.run h where h.task_id = $1 and h.state = ${runState.held} and h.limit_key = room.key and h.due_ms <= $2
         order by h.due_ms, h.id limit greatest(room.places, 0) for update skip locked) pick
       order by room.n limit $3),
     ${movedSql(s)},
     ${countedSql(s, "case when $9 then limit_key else '' end", "$8::bigint", "$10")}
     select (select count(*) from moved)::int as admitted, (select count(*) from told),
            (select coalesce(max(n), 0) from lane where key is not null) as keys,
            (select key from lane where key is not null and n <= ${keysPerStep} order by n desc limit 1) as last_key,
            (select key from picked order by n desc limit 1) as last_admitted,
            (select min(coalesce(room.next_ms, $8::bigint + $7::bigint))::float8
             from room left join (select key, count(*) as taken from picked group by key) p using (key)
             where room.tokens <= coalesce(p.taken, 0)) as next_ms`;
  const values = (at: string, left: number) => [
    task.task_id,
    now,
    left,
    at,
    limit?.perKey ?? null,
    rate?.byKey ? rate.limit : null,
    rate?.perMs ?? 0,
    stepEnd(task.definition.rate, now),
    rate?.byKey === true,
    rate !== undefined,
    stepMsOf(rate),
  ];
  let from = task.cursor;
  let left = room;
  let nextMs: number | null = null;
  for (;;) {
    const { rows } = await client.query(text, values(from, left));
    const step = rows[0] as unknown as Admitted;
    left -= step.admitted;
    if (step.next_ms !== null) nextMs = Math.min(nextMs ?? Number.POSITIVE_INFINITY, step.next_ms);
    const ended = step.keys <= keysPerStep;
    if (left <= 0) {
      await moveCursor(client, s, task, step.last_admitted ?? "");
      // If `room` was `runsPerStep`, the step's own limit was reached and the task may have more free slots.
      return room === runsPerStep ? now : nextMs;
    }
    if (ended && from === "") {
      await moveCursor(client, s, task, "");
      return nextMs;
    }
    if (!ended) {
      await moveCursor(client, s, task, step.last_key ?? "");
      return now;
    }
    from = "";
  }
}

async function moveCursor(client: SqlClient, s: string, task: Paced, cursor: string): Promise<void> {
  if (cursor === task.cursor) return;
  await client.query(`update ${s}.gate set cursor = $2 where task_id = $1`, [task.task_id, cursor]);
}
