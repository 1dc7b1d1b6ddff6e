import type { SqlClient } from "../../../base/change.ts";
import type { AddressWrite, RouteStore, RouteView } from "../../../run/route-store.ts";
import { failIn } from "../claims/finish.ts";
import { directedSql, prioritiesSql } from "../claims/ready.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { insertRunSql } from "../enqueue/new-run.ts";
import { sourceNumber } from "../enqueue/sources.ts";
import { LooseEnds, tieUp } from "../flow/following.ts";
import { runOutcome, runState, takesRuns } from "../states.ts";
import { endUnclaimedSql } from "./unclaimed-ends.ts";

const withdrawnPerStep = 1_000;
/**
 * The most late runs of one priority that one step withdraws from one worker. If all workers are busy, runs that are withdrawn would only
 * be addressed to the same workers again.
 */
const latePerStep = 50;
/** The load of a worker is counted only up to this number of claimed runs, and up to this number of addressed runs. */
const loadMost = 1_000;
/**
 * SQL condition: a run may be addressed to another worker if its addressee has no free slot. With other routes it must stay with its
 * worker.
 */
const movable = `coalesce(t.definition->'route'->>'by', 'least-loaded') in
  ('least-loaded', 'random', 'round-robin', 'least-recently-used', 'shards')`;

/**
 * SQL: the release to which a run is pinned, if its task has `pin`: the release of the worker of its last attempt; otherwise of the worker
 * of the pinned run that spawned it, that it continues, or whose children it joins. Returns no row if there is no such release.
 */
const releaseSql = (s: string, run: string) => `
      select o.settings->>'release' as release from (
        select session_id, 1 as rank from (
          select session_id from ${s}.attempt a where a.run_id = ${run}."runId" and ${run}.attempt > 0 order by a.attempt desc, a.ended_ms desc limit 1) last
        union all
        select p.session_id, 2 from (
          select task_id, session_id from ${s}.run where id = ${run}.parent_id
          union all select task_id, session_id from ${s}.run_history where id = ${run}.parent_id) p
          join ${s}.task u on u.id = p.task_id and u.definition ? 'pin'
        where ${run}.source in (${(["child", "chain", "join"] as const).map(sourceNumber).join(", ")})) had
      join ${s}.session o on o.id = had.session_id
      where (select t.definition ? 'pin' from ${s}.task t where t.id = ${run}."taskId")
      order by had.rank limit 1`;

/**
 * SQL: one statement, so that runs, turns and loads are read from one snapshot: see `addressSql`. If no run is due, workers and tasks are
 * not read.
 */
const viewSql = (s: string) => `
  with found as materialized (
    select r.id as "runId", r.task_id as "taskId", coalesce(r.limit_key, r.key) as key, r.shard, r.due_ms as "dueMs", r.attempt,
           r.parent_id, r.source
    from unnest(${prioritiesSql}) as p (priority) cross join lateral (
      select * from ${s}.run where state = ${runState.ready} and group_id = 0 and priority = p.priority and due_ms <= $1
      and task_id <> all ($3::int[]) order by due_ms limit $2 + 1) r
    order by r.priority desc, r.due_ms, r.id limit $2 + 1
  ), runs as materialized (
    select f."runId", f."taskId", f.key, f.shard, f."dueMs", f.attempt, x.release,
           x.release is not null and exists (
             select from ${s}.session o where o.settings->>'release' = x.release and coalesce(o.capacity, 1) > 0
             and (o.ended_ms is null or o.ended_ms >= $4::bigint)) as "releaseStands"
    from (select * from found limit $2) f left join lateral (${releaseSql(s, "f")}) x on true
  ), ids as materialized (select array(select distinct "taskId" from runs) as ids
  ), workers as (
    select o.id as "sessionId", o.node, o.labels, o.capacity, o.groups, o.settings->>'release' as release,
           case when o.tasks is not null then array(select t.id from ${s}.task t, ids where t.id = any(ids.ids) and coalesce(t.of_name, t.name) = any(o.tasks)) end as "canRun",
           (select count(*) from (select 1 from ${s}.run r where r.session_id = o.id and r.state = ${runState.claimed} limit ${loadMost}) x)
           + (select count(*) from (select 1 from ${s}.run r where r.group_id = -o.id and r.state = ${runState.ready} limit ${loadMost}) x) as load
    from ${s}.session o where exists (select from runs) and ${takesRuns} and coalesce(o.capacity, 1) > 0 order by o.id
  ), tasks as (
    select t.id as "taskId", t.definition,
           (select coalesce(jsonb_object_agg(a.node, a.turn), '{}') from ${s}.addressee a where a.task_id = t.id) as turns,
           case when t.definition->'limit'->>'perWorker' is null and t.definition->'route'->>'by' is distinct from 'shards' then '{}' else (
             select coalesce(jsonb_object_agg(session_id, runs), '{}') from (
               select case r.state when ${runState.claimed} then r.session_id else -r.group_id end as session_id, count(*) as runs
               from ${s}.run r where r.task_id = t.id and (r.state = ${runState.claimed} or r.state = ${runState.ready} and r.group_id < 0) group by 1) x) end as held
    from ${s}.task t where t.id = any ((select ids from ids)::int[])
  )
  select (select coalesce(json_agg(runs), '[]') from runs) as runs, (select coalesce(json_agg(workers), '[]') from workers) as workers,
         (select coalesce(json_agg(tasks), '[]') from tasks) as tasks, (select count(*) from found) > $2 as more,
         (select min(r.due_ms) from unnest(${prioritiesSql}) as p (priority) cross join lateral (
            select due_ms from ${s}.run where state = ${runState.ready} and group_id = 0 and priority = p.priority and due_ms > $1
            order by due_ms limit 1) r) as "nextDueMs"`;

/*
 * SQL: addresses runs to sessions. If two routers have read the same turns of a task, only the first one writes. All choices of the second
 * one for that task are refused, because their turns have been used, and it reads again. An earlier statement has locked the tasks, so that
 * this one sees every turn written before. The gates of the tasks are locked too, so that the counts of a limit per worker stay true until
 * the commit. This statement locks the rows of the sessions: otherwise a session could end or drain at the same time, and the withdrawal of
 * its runs would miss a run addressed now.
 */
const addressSql = (s: string) => `
  with given as (
    select * from unnest($1::bigint[], $2::int[], $3::bigint[], $4::text[], $5::bigint[])
      with ordinality as i (run_id, task_id, session_id, node, turn, n)
  ), overtaken as materialized (
    select g.task_id from given g group by g.task_id
    having min(g.turn) <= (select max(a.turn) from ${s}.addressee a where a.task_id = g.task_id)
  ), present as materialized (
    select o.id from ${s}.session o where o.id in (select session_id from given) and ${takesRuns} order by o.id for share
  ), room as (
    select x.task_id, x.session_id, (t.definition->'limit'->>'perWorker')::int - (
             select count(*) from ${s}.run r where r.task_id = x.task_id
             and (r.state = ${runState.claimed} and r.session_id = x.session_id or r.state = ${runState.ready} and r.group_id = -x.session_id)) as places
    from (select distinct task_id, session_id from given) x join ${s}.task t on t.id = x.task_id
    where t.definition->'limit'->>'perWorker' is not null
  ), ranked as (
    select given.*, room.places, row_number() over (partition by given.task_id, given.session_id order by n) as place
    from given join present on present.id = given.session_id
      left join room on room.task_id = given.task_id and room.session_id = given.session_id
    where given.task_id not in (select task_id from overtaken)
  ), picked as materialized (
    select r.id, x.session_id, x.node, x.turn, x.places from ranked x join ${s}.run r on r.id = x.run_id
    where (x.places is null or x.place <= x.places) and r.state = ${runState.ready} and r.group_id = 0
    order by r.id for update of r skip locked
  ), addressed as (
    update ${s}.run r set group_id = -picked.session_id, ready_ms = case
      when picked.places is not null and exists (select from ${s}.session o where o.id = picked.session_id and o.started_ms <= r.due_ms)
      then $6::bigint else r.ready_ms end
    from picked
    where r.id = picked.id and r.state = ${runState.ready} and r.group_id = 0
    returning r.id, r.task_id, r.due_ms, picked.session_id, picked.node, picked.turn
  ), turns as (
    insert into ${s}.addressee as a (task_id, node, turn)
    select task_id, node, max(turn) from addressed group by task_id, node order by task_id, node
    on conflict (task_id, node) do update set turn = greatest(a.turn, excluded.turn)
  ), told as (
    select count(${notifySql(s, "'directed ' || session_id || ' ' || due_ms")}) from (
      select session_id, min(due_ms) as due_ms from addressed group by session_id) x
  )
  select array(select id from addressed) as addressed, array(select task_id from overtaken) as overtaken, (select count(*) from told)`;

const told = (s: string, rows: string) => `
  select (select count(*) from ${rows})::int as count, ${notifySql(s, "'direct ' || due_ms")}
  from (select min(due_ms) as due_ms from ${rows}) x where due_ms is not null`;

/**
 * A directed run is a ready run whose group is 0 until it is addressed to a worker, and then the negative number of the addressee's
 * session. So claims need no extra code for addressed runs. A claim and a withdrawal both update this one row, and each requires that the
 * other has not been made.
 */
export function routeStore(database: Database): RouteStore {
  return {
    view: (untilMs, limit, exceptTaskIds, goneMs) => view(database, untilMs, limit, exceptTaskIds, goneMs),
    address: (writes, nowMs) => address(database, writes, nowMs),
    split: (runId, total, addressees) => split(database, runId, total, addressees),
    giveUp: (runId, release, nowMs) => giveUp(database, runId, release, nowMs),
    withdraw: (lateMs) => withdraw(database, lateMs),
    sessions: () => sessions(database),
    spread: () => spread(database),
    drain: (sessionId) => database.transaction((client) => drainSession(client, database.schema, sessionId)),
  };
}

async function view(
  database: Database,
  untilMs: number,
  limit: number,
  exceptTaskIds: number[],
  goneMs: number,
): Promise<RouteView> {
  const values = [Math.round(untilMs), limit, exceptTaskIds, Math.round(goneMs)];
  const [seen] = await database.query<RouteView>("route-view", viewSql(database.schema), values);
  return seen as RouteView;
}

async function address(
  database: Database,
  writes: AddressWrite[],
  nowMs: number,
): Promise<{ addressed: Set<number>; overtaken: Set<number> }> {
  const s = database.schema;
  const taskIds = writes.map(({ taskId }) => taskId);
  const values = [
    writes.map(({ runId }) => runId),
    taskIds,
    writes.map(({ sessionId }) => sessionId),
    writes.map(({ node }) => node),
    writes.map(({ turn }) => turn),
    Math.round(nowMs),
  ];
  return database.transaction(async (client) => {
    // Tasks are locked in the same order as in an edit.
    await client.query(`select from ${s}.task where id = any($1) order by id for no key update`, [taskIds]);
    await client.query(`select from ${s}.gate where task_id = any($1) order by task_id for update`, [taskIds]);
    const { rows } = await client.query(addressSql(s), values);
    const numbersOf = (list: unknown) => new Set((list as unknown[]).map(Number));
    return { addressed: numbersOf(rows[0]?.addressed), overtaken: numbersOf(rows[0]?.overtaken) };
  });
}

// Splits a run into its parts. Each part has the parent, the inputs and the origin of the run; only the first part has its key.
async function split(
  database: Database,
  runId: number,
  total: number,
  addressees: { sessionId: number; node: string }[] | null,
): Promise<void> {
  const s = database.schema;
  await database.query(
    "route-split",
    `with part as (
       select i - 1 as i, ($3::bigint[])[i] as session_id, ($4::text[])[i] as node from generate_series(1, $2::int) i),
     head as (
       update ${s}.run r set shard = array[0, $2::int], group_id = -coalesce(part.session_id, 0), limit_key = coalesce(part.node, limit_key)
       from part where part.i = 0 and r.id = $1 and r.state = ${runState.ready} and r.group_id = 0 and r.shard is null returning r.*),
     others as (
       ${insertRunSql(s, {
         task_id: "h.task_id",
         group_id: "-coalesce(part.session_id, 0)",
         version: "h.version",
         state: `${runState.ready}`,
         due_ms: "h.due_ms",
         created_ms: "h.created_ms",
         priority: "h.priority",
         gate: "0",
         source: "h.source",
         payload: "h.payload",
         limit_key: "coalesce(part.node, h.limit_key)",
         parent_id: "h.parent_id",
         inputs: "h.inputs",
         slot_ms: "h.slot_ms",
         origin: "h.origin",
         shard: "array[part.i, $2::int]",
         overrides: "h.overrides",
         expires_ms: "h.expires_ms",
         labels: "h.labels",
       })}
       from head h cross join part where part.i > 0)
     select ${notifySql(s, "case when session_id is null then 'direct ' else 'directed ' || session_id || ' ' end || due_ms")}
     from (select distinct part.session_id, head.due_ms from part cross join head) x`,
    [runId, total, addressees?.map(({ sessionId }) => sessionId) ?? [], addressees?.map(({ node }) => node) ?? []],
  );
}

async function giveUp(database: Database, runId: number, release: string | null, nowMs: number): Promise<void> {
  const s = database.schema;
  const now = Math.round(nowMs);
  const loose = new LooseEnds();
  await database.transaction(async (client) => {
    const { rows } = await client.query(
      `select task_id, fence, attempt, limit_key as member from ${s}.run
       where id = $1 and state = ${runState.ready} and group_id = 0 ${release === null ? "and shard is not null" : ""} for update`,
      [runId],
    );
    const [part] = rows;
    if (part?.attempt === 0) {
      const why = release === null ? "its worker left before it began" : releaseGone(release);
      const end = { which: "where r.id = $1", outcome: runOutcome.cancelled, why: "$3", now: "$2", answer: "1" };
      await client.query(endUnclaimedSql(s, end), [runId, now, why]);
    } else if (part) {
      const tried = {
        runId,
        fence: Number(part.fence),
        attempt: part.attempt as number,
        taskId: part.task_id as number,
      };
      const error =
        release === null
          ? {
              code: "WORKER_LOST",
              message: `the worker ${JSON.stringify(part.member)} left before it had finished its part of the broadcast, and was not back within the task's grace`,
            }
          : { code: "RELEASE_GONE", message: releaseGone(release) };
      await failIn(client, s, { ...tried, ...error }, now, loose);
    }
  });
  await tieUp(database, loose, nowMs);
}

const releaseGone = (release: string) =>
  `no worker of the release ${JSON.stringify(release)}, with which it began, is left, and its task says onReleaseGone: "fail"`;

async function withdraw(database: Database, lateMs: number | null): Promise<number> {
  const s = database.schema;
  const [row] = await database.query<{ count: number }>(
    "route-withdraw",
    `with recursive ${directedSql(s)},
     stray as materialized (
       select r.id from directed cross join lateral (
         select r.id from ${s}.run r where r.state = ${runState.ready} and r.group_id = directed.group_id
         and not exists (select from ${s}.session o where o.id = -directed.group_id and ${takesRuns})
         limit ${withdrawnPerStep} for update skip locked) r
       union all
       select r.id from directed cross join unnest(${prioritiesSql}) as p (priority) cross join lateral (
         select r.id from ${s}.run r where r.state = ${runState.ready} and r.group_id = directed.group_id and r.priority = p.priority
         and r.due_ms < $1::bigint and r.task_id = any (array(select t.id from ${s}.task t where t.routed and ${movable}))
         order by r.due_ms limit ${latePerStep} for update skip locked) r
       where $1::bigint is not null),
     back as (
       update ${s}.run r set group_id = 0 from (select distinct id from stray) x
       where r.id = x.id and r.state = ${runState.ready} and r.group_id < 0 returning r.due_ms)
     ${told(s, "back")}`,
    [lateMs === null ? null : Math.round(lateMs)],
  );
  return row?.count ?? 0;
}

async function sessions(database: Database): Promise<number[]> {
  const s = database.schema;
  const rows = await database.query<{ id: number }>(
    "route-sessions",
    `select o.id from ${s}.session o where ${takesRuns} and coalesce(o.capacity, 1) > 0`,
  );
  return rows.map(({ id }) => id);
}

async function spread(database: Database): Promise<number> {
  const s = database.schema;
  const [row] = await database.query<{ count: number }>(
    "route-spread",
    `with recursive ${directedSql(s)},
     part as materialized (
       select r.id from directed cross join lateral (
         select r.id, r.task_id from ${s}.run r where r.state = ${runState.ready} and r.group_id = directed.group_id and r.shard is not null
         limit ${withdrawnPerStep} for update skip locked) r
       join ${s}.task t on t.id = r.task_id where t.definition->'route'->>'by' = 'shards'),
     back as (
       update ${s}.run r set group_id = 0 from part where r.id = part.id and r.state = ${runState.ready} and r.group_id < 0
       returning r.due_ms)
     ${told(s, "back")}`,
  );
  return row?.count ?? 0;
}

/** Drains a session in the caller's transaction: marks it and withdraws the runs that are addressed to it. */
export async function drainSession(client: SqlClient, s: string, sessionId: number): Promise<void> {
  // This must be a separate statement: it waits for routers that are addressing runs to this session, so that the next statement sees their
  // writes.
  await client.query(`update ${s}.session set draining = true where id = $1`, [sessionId]);
  await client.query(
    `with mine as materialized (
       select id from ${s}.run where state = ${runState.ready} and group_id = -$1::bigint order by id for update skip locked),
     back as (
       update ${s}.run r set group_id = 0 from mine where r.id = mine.id and r.state = ${runState.ready} and r.group_id < 0
       returning r.due_ms)
     ${told(s, "back")}`,
    [sessionId],
  );
}
