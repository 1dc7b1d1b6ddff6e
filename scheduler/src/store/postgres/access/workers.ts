import type {
  ClaimStanding,
  NewKey,
  Opening,
  RemoteSession,
  SessionOwner,
  SessionRecall,
  WorkerKey,
  WorkerStore,
} from "../../../access/worker-store.ts";
import type { Change } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import { limits } from "../../../base/limits.ts";
import type { SessionIdentity } from "../../../cluster/session-store.ts";
import type { Overrides } from "../../../run/enqueue-options.ts";
import { makesRoomSql } from "../claims/group-limits.ts";
import { prioritiesSql } from "../claims/ready.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { runRecall, runState } from "../states.ts";
import { sessionsMostSql } from "./quotas.ts";

interface LookRow {
  live_session: number | null;
  live_state: number | null;
  live_task: number | null;
  attempt: number | null;
  losses: number | null;
  snoozes: number | null;
  linked: boolean | null;
  overrides: Overrides | null;
  claimed_ms: number | null;
  ended_session: number | null;
  ended_task: number | null;
  ended_attempt: number | null;
  ended_code: string | null;
  tried_session: number | null;
  tried_attempt: number | null;
  tried_outcome: string | null;
  /** True if the ended claim belonged to this worker, in this session or an earlier one. */
  was_mine: boolean;
}

const keyFields = () =>
  `id as "keyId", name, groups, created_ms as "createdMs", created_by as "createdBy", expires_ms as "expiresMs", revoked_ms as "revokedMs"`;

export function workerStore(database: Database): WorkerStore {
  return {
    createKey: (key, nowMs) => createKey(database, key, nowMs),
    keys: () => keys(database),
    keyByName: (name) => keyByName(database, name),
    key: (keyId) => key(database, keyId),
    validKeys: (limit) => validKeys(database, limit),
    revokeKey: (name, change) => revokeKey(database, name, change),
    revokeExpired: (change) => revokeExpired(database, change),
    open: (identity, of, nowMs) => open(database, identity, of, nowMs),
    attach: (sessionId, keyId, nowMs) => attach(database, sessionId, keyId, nowMs),
    beat: (sessionIds, nowMs) => beat(database, sessionIds, nowMs),
    recalls: (sessionIds) => recalls(database, sessionIds),
    heldSums: (sessionIds) => heldSums(database, sessionIds),
    directed: (sessionIds) => directed(database, sessionIds),
    look: (sessionId, claims) => look(database, sessionId, claims),
    tasksBut: (groupIds, names) => tasksBut(database, groupIds, names),
  };
}

async function createKey(
  database: Database,
  { name, groups, hash, createdBy, reason = "", expiresMs = null }: NewKey,
  nowMs: number,
): Promise<WorkerKey> {
  const s = database.schema;
  const [made] = await database.query<WorkerKey>(
    "worker-key-create",
    `with made as (
       insert into ${s}.worker_key (name, groups, hash, created_ms, created_by, expires_ms) values ($1, $2, $3, $4, $5, $7)
       on conflict (name) where revoked_ms is null do nothing returning *
     ), put_down as (
       insert into ${s}.audit (at_ms, who, act, about, named, after, why)
       select $4, $5, 'create', 'worker-key', name, jsonb_strip_nulls(jsonb_build_object('groups', groups, 'expires', expires_ms)), $6 from made
     ) select ${keyFields()} from made`,
    [name, groups, hash, Math.round(nowMs), createdBy, reason, expiresMs === null ? null : Math.round(expiresMs)],
  );
  if (made) return made;
  throw new CarillonError("KEY_NAME_TAKEN", `there is a worker key ${name} already`, {
    hint: "Give this one another name, or revoke the other first.",
  });
}

function keys(database: Database): Promise<WorkerKey[]> {
  const s = database.schema;
  return database.query<WorkerKey>("worker-keys", `select ${keyFields()} from ${s}.worker_key order by id desc`);
}

async function keyByName(database: Database, name: string): Promise<WorkerKey> {
  const s = database.schema;
  const [found] = await database.query<WorkerKey>(
    "worker-key-by-name",
    `select ${keyFields()} from ${s}.worker_key where name = $1 order by id desc limit 1`,
    [name],
  );
  if (found) return found;
  throw new CarillonError("KEY_NAME_UNKNOWN", `there is no worker key ${name}`, {
    hint: "See carillon keys list.",
  });
}

async function key(database: Database, keyId: number): Promise<(WorkerKey & { hash: Buffer }) | null> {
  const s = database.schema;
  const [row] = await database.query<WorkerKey & { hash: Buffer }>(
    "worker-key",
    `select ${keyFields()}, hash from ${s}.worker_key where id = $1`,
    [keyId],
  );
  return row ?? null;
}

function validKeys(database: Database, limit: number): Promise<(WorkerKey & { hash: Buffer })[]> {
  const s = database.schema;
  return database.query<WorkerKey & { hash: Buffer }>(
    "worker-keys-valid",
    `select ${keyFields()}, hash from ${s}.worker_key where revoked_ms is null order by id desc limit $1`,
    [limit],
  );
}

/** Returns SQL that revokes keys, ends their sessions and notifies servers; $2 is the time, $3 the author, $4 the reason. */
const revokeSql = (s: string, which: string, why: string) => `
  with revoked as (
    update ${s}.worker_key set revoked_ms = $2 where ${which} and revoked_ms is null returning *
  ), over as (
    update ${s}.session o set ended_ms = $2, ended_why = '${why}' from revoked
    where o.key_id = revoked.id and o.ended_ms is null
  ), put_down as (
    insert into ${s}.audit (at_ms, who, act, about, named, before, why)
    select $2, $3, 'revoke', 'worker-key', name, jsonb_build_object('groups', groups), $4 from revoked
  ), told as (
    select ${notifySql(s, "'revoked ' || id")} from revoked
  ) select ${keyFields()} from revoked where (select count(*) from told) > 0`;

async function revokeKey(database: Database, name: string, { author, reason, nowMs }: Change): Promise<WorkerKey> {
  const sql = revokeSql(database.schema, "name = $1", "its key was revoked");
  const [revoked] = await database.query<WorkerKey>("worker-key-revoke", sql, [
    name,
    Math.round(nowMs),
    author,
    reason,
  ]);
  // No row is returned if the key was revoked before, for example because the call is a repetition.
  return revoked ?? keyByName(database, name);
}

async function revokeExpired(database: Database, { author, reason, nowMs }: Change): Promise<string[]> {
  const sql = revokeSql(database.schema, "expires_ms <= $1", "its key has expired");
  const now = Math.round(nowMs);
  const revoked = await database.query<WorkerKey>("worker-keys-expire", sql, [now, now, author, reason]);
  return revoked.map(({ name }) => name);
}

async function open(
  database: Database,
  identity: SessionIdentity,
  { keyId, instance, tasks }: SessionOwner,
  nowMs: number,
): Promise<Opening> {
  const s = database.schema;
  // Sessions that join at the same moment do not count each other, so the limit can be exceeded slightly. It is only meant to prevent
  // thousands of sessions.
  const live = (key: string) => `(select count(*)::int from ${s}.session where ended_ms is null and key_id = ${key})`;
  for (;;) {
    const [opened] = await database.ask<{ id: number }>(
      "worker-session-open",
      `insert into ${s}.session (node, role, host, pid, version, timeout_ms, started_ms, seen_ms, groups, labels, capacity,
                                 key_id, instance, tasks)
       select $1, 'worker', $2, $3, $4, $5, $6, $6, $7, $8, $9, $10, $11, $12 where ${live("$10")} < ${sessionsMostSql(s, "$10")}
       on conflict (node) where ended_ms is null do nothing returning id`,
      [
        identity.node,
        identity.host,
        identity.pid,
        identity.version,
        identity.timeoutMs,
        Math.round(nowMs),
        identity.groups ?? [],
        JSON.stringify(identity.labels ?? {}),
        identity.capacity ?? null,
        keyId,
        instance,
        tasks,
      ],
    );
    if (opened) return { sessionId: opened.id };
    const [found] = await database.ask<{
      id: number | null;
      host: string;
      pid: number;
      mine: boolean;
      live: number;
      most: number;
    }>(
      "worker-session-holder",
      `select o.id, o.host, o.pid, o.key_id is not distinct from $2 and o.instance is not distinct from $3 and o.instance <> '' as mine,
         ${live("$2")} as live, ${sessionsMostSql(s, "$2")} as most
       from (select) one left join ${s}.session o on o.node = $1 and o.ended_ms is null`,
      [identity.node, keyId, instance],
    );
    const {
      id = null,
      host = "",
      pid = 0,
      mine = false,
      live: sessions = 0,
      most = limits.sessionsPerKey,
    } = found ?? {};
    if (id !== null) return mine ? { sessionId: id } : { takenBy: { host, pid } };
    if (sessions >= most) return { full: sessions };
    // A session ended between the two statements, so the limit or the name is free now; the loop tries again.
  }
}

async function attach(
  database: Database,
  sessionId: number,
  keyId: number,
  nowMs: number,
): Promise<RemoteSession | null> {
  const s = database.schema;
  const [row] = await database.ask<RemoteSession>(
    "worker-session-attach",
    `with beaten as (
       update ${s}.session set beat = beat + 1, seen_ms = $2 where id = $1 and ended_ms is null and key_id = $3 returning id)
     select o.id as "sessionId", o.key_id as "keyId", o.node, o.groups, o.tasks, o.timeout_ms as "timeoutMs",
            not exists (select from beaten) as ended, o.draining
     from ${s}.session o where o.id = $1 and o.key_id is not null`,
    [sessionId, Math.round(nowMs), keyId],
  );
  return row ?? null;
}

async function beat(database: Database, sessionIds: number[], nowMs: number): Promise<Map<number, boolean>> {
  const s = database.schema;
  const rows = await database.ask<{ id: number; draining: boolean }>(
    "worker-session-beat",
    `update ${s}.session o set beat = o.beat + 1, seen_ms = $2
     from (select id from ${s}.session where id = any($1) and ended_ms is null order by id for update) b
     where o.id = b.id returning o.id, o.draining`,
    [sessionIds, Math.round(nowMs)],
  );
  return new Map(rows.map(({ id, draining }) => [id, draining]));
}

function recalls(database: Database, sessionIds: number[]): Promise<SessionRecall[]> {
  const s = database.schema;
  return database.query<SessionRecall>(
    "worker-recalls",
    `select session_id as "sessionId", id as "runId", fence, case recall when 1 then 'cancel' else 'withdraw' end as kind,
            coalesce(recall_why, '') as why
     from ${s}.run where session_id = any($1) and state = ${runState.claimed} and recall <> ${runRecall.none}`,
    [sessionIds],
  );
}

async function heldSums(database: Database, sessionIds: number[]): Promise<Map<number, number>> {
  const s = database.schema;
  const rows = await database.query<{ id: number; held: number }>(
    "worker-held-sums",
    `select session_id as id, sum(fence)::float8 as held from ${s}.run where session_id = any($1) and state = ${runState.claimed} group by 1`,
    [sessionIds],
  );
  return new Map(rows.map(({ id, held }) => [id, held]));
}

function directed(database: Database, sessionIds: number[]): Promise<{ sessionId: number; dueMs: number }[]> {
  const s = database.schema;
  return database.query<{ sessionId: number; dueMs: number }>(
    "worker-directed",
    `select o.id as "sessionId", min(r.due_ms) as "dueMs"
     from unnest($1::bigint[]) as o (id) cross join unnest(${prioritiesSql}) as p (priority) cross join lateral (
       select due_ms from ${s}.run where state = ${runState.ready} and group_id = -o.id and priority = p.priority order by due_ms limit 1) r
     where exists (select from ${s}.run where state = ${runState.ready} and group_id < 0)
       and (select 1 from ${s}.run where state = ${runState.ready} and group_id = -o.id limit 1) is not null
     group by 1`,
    [sessionIds],
  );
}

async function look(
  database: Database,
  sessionId: number,
  claims: { runId: number; fence: number }[],
): Promise<ClaimStanding[]> {
  const s = database.schema;
  const rows = await database.query<LookRow>(
    "worker-look",
    `select r.session_id as live_session, r.state as live_state, r.claimed_ms, r.task_id as live_task, r.attempt, r.losses, r.snoozes, r.overrides,
            r.gate > 0 or r.after_end or r.parent_id is not null
              or exists (select from ${s}.plan p where p.task_id = r.task_id and p.followed) or ${makesRoomSql(s, "r.task_id")} as linked,
            h.session_id as ended_session, h.task_id as ended_task, h.attempt as ended_attempt, h.error->>'code' as ended_code,
            a.session_id as tried_session, a.attempt as tried_attempt, a.outcome as tried_outcome,
            exists (select from ${s}.session o, ${s}.session me where me.id = $3
                    and o.id = coalesce(a.session_id, h.session_id, case when r.state <> ${runState.claimed} then r.session_id end)
                    and o.key_id = me.key_id and o.node = me.node) as was_mine
     from unnest($1::bigint[], $2::bigint[]) with ordinality as i (id, fence, place)
     left join ${s}.run r on r.id = i.id and r.fence = i.fence
     left join lateral (select * from ${s}.run_history where id = i.id and fence = i.fence limit 1) h on true
     left join lateral (select * from ${s}.attempt where run_id = i.id and fence = i.fence limit 1) a on true
     order by place`,
    [claims.map(({ runId }) => runId), claims.map(({ fence }) => fence), sessionId],
  );
  return rows.map((row) => standingOf(row, sessionId));
}

async function tasksBut(database: Database, groupIds: number[], names: string[]): Promise<number[]> {
  const s = database.schema;
  const rows = await database.query<{ id: number }>(
    "worker-tasks-but",
    `select id from ${s}.task where group_id = any($1) and coalesce(of_name, name) <> all($2) and deleted_ms is null`,
    [groupIds, names],
  );
  return rows.map(({ id }) => id);
}

/** Returns the state of a worker's claim. A run that is retried is live again, and has its old fence until it is claimed again. */
function standingOf(row: LookRow, sessionId: number): ClaimStanding {
  const taskId = row.live_task ?? row.ended_task ?? 0;
  const attempt = row.attempt ?? row.ended_attempt ?? row.tried_attempt ?? 1;
  const as = (standing: ClaimStanding["standing"]): ClaimStanding => ({
    standing,
    taskId,
    attempt,
    losses: row.losses ?? 0,
    snoozes: row.snoozes ?? 0,
    linked: row.linked ?? false,
    overrides: row.overrides,
    claimedMs: row.claimed_ms ?? 0,
  });
  const owner = row.tried_session ?? row.ended_session ?? row.live_session;
  if (owner === null) return as("unknown");
  if (owner !== sessionId && !row.was_mine) return as("foreign");
  if (row.tried_outcome !== null) return as(row.tried_outcome === "lost" ? "lost" : "retried");
  if (row.ended_session !== null) return as(row.ended_code === "WORKER_LOST" ? "lost" : "ended");
  return as(row.live_state === runState.claimed ? "held" : "released");
}
