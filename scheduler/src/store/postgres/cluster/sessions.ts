import { messageOf } from "../../../base/errors.ts";
import type { ClusterClock } from "../../../cluster/clock-votes.ts";
import type {
  Beat,
  Beating,
  ClusterRecord,
  Leadership,
  Member,
  Pulse,
  SessionIdentity,
  SessionSettings,
  SessionStore,
} from "../../../cluster/session-store.ts";
import type { Sweep } from "../../../cluster/sweeps.ts";
import { StoreWait } from "../../store-wait.ts";
import type { Database } from "../database.ts";
import { type StandingRow, serverOf, standingSql } from "../recovery/standing.ts";
import { runState } from "../states.ts";
import { adoptClock, clockVotes, noteTimeBack, rawMsSql, shiftClock } from "./clock.ts";
import { campaign, resign, terms } from "./leadership.ts";
import { identityColumns, identityValues } from "./session-identity.ts";
import { notifySql } from "./signals.ts";
import { sweepsSql, sweptAfterMs } from "./sweeps.ts";
import { WaitingLook, type WaitingRow, waitingSql } from "./waiting.ts";

const beatingFields = "id, node, role, beat, witnessed, timeout_ms";

// The answer to a heartbeat contains only `beatingFields` of the sessions. The other fields are read on request, because each heartbeat of
// each process would otherwise read and send them.
export const memberFields = `${beatingFields}, host, pid, version, started_ms, seen_ms, groups, labels, capacity, settings, tasks, still_ms, draining`;

export interface MemberRow {
  id: number;
  node: string;
  role: "node" | "worker";
  host: string;
  pid: number;
  version: string;
  beat: number;
  witnessed: boolean;
  timeout_ms: number;
  started_ms: number;
  seen_ms: number;
  groups: string[];
  labels: Record<string, string>;
  capacity: number | null;
  settings: SessionSettings | null;
  tasks: string[] | null;
  still_ms: number | null;
  draining: boolean;
}

type BeatingRow = Pick<MemberRow, "id" | "node" | "role" | "beat" | "witnessed" | "timeout_ms">;

interface PulseRow extends StandingRow {
  my_beat: number | null;
  /** True if the store records that this session has ended; null if the store has no such session. */
  my_end: boolean | null;
  store_ms: number;
  clock: ClusterClock;
  alive: boolean;
  draining: boolean;
  term: number;
  leader: number | null;
  led: boolean;
  next_slot_ms: number | null;
  next_operation_ms: number | null;
  next_pause_end_ms: number | null;
  ruled: boolean;
  changes: string;
  members: BeatingRow[];
  sweeps?: Sweep[] | null;
}

/**
 * How many of the latest changes a heartbeat reads. Changes are not committed in the order of their timestamps, so reading only the latest
 * timestamp would miss some. Reading a window of time instead would make each heartbeat as expensive as all recent changes, and all tasks
 * may have changed.
 */
const changesWatched = 100;

const asBeating = (row: BeatingRow): Beating => ({
  sessionId: row.id,
  node: row.node,
  role: row.role,
  beat: row.beat,
  witnessed: row.witnessed,
  timeoutMs: row.timeout_ms,
});

export const asMember = (row: MemberRow): Member => ({
  ...asBeating(row),
  host: row.host,
  pid: row.pid,
  version: row.version,
  startedMs: row.started_ms,
  seenMs: row.seen_ms,
  groups: row.groups,
  labels: row.labels,
  capacity: row.capacity,
  settings: row.settings,
  tasks: row.tasks,
  stillMs: row.still_ms,
  draining: row.draining,
});

/**
 * Statement names of the kinds of heartbeat. PostgreSQL initialises all parts of a statement before it executes the first, so rarely needed
 * parts in the same statement would double the cost of every heartbeat.
 */
const beatNames = { bare: "session-beat-bare", waiting: "session-beat", unserved: "session-beat-unserved" } as const;
type BeatKind = keyof typeof beatNames;

/**
 * SQL of the heartbeat: an idle node usually sends only this one statement per interval. It keeps the session alive, and returns the
 * store's clock, the leadership, the members and the times of the next work. A *bare* heartbeat reads no runs: see `WaitingLook`.
 */
export const beatSql = (s: string, kind: BeatKind) => `
  with me as (
    update ${s}.session set beat = beat + 1, seen_ms = $2::bigint, witnessed = $3, still_ms = null,
      clock_off_ms = round(${rawMsSql} - $2::bigint), wall_off_ms = round(${rawMsSql} - $5::bigint),
      store_wait_ms = $6::int, uncoordinated_ms = case when not $3 then coalesce(uncoordinated_ms, $2::bigint) end
    where id = $1 and ended_ms is null
    and (${s}.whole() or exists (select from ${s}.recovery_session where session_id = $1 and told))
    returning id, beat, role, groups, draining
  )
  select ${standingSql(s)}, (select beat from me) as my_beat, (select ended_ms is not null from ${s}.session where id = $1) as my_end,
         ${rawMsSql} + k.clock_shift_ms as store_ms,
         json_build_object('number', k.clock_number, 'shiftMs', k.clock_shift_ms, 'sinceMs', k.clock_since_ms) as clock,
         exists (select from me) as alive, coalesce((select draining from me), false) as draining,
         l.term, l.session_id as leader,
         exists (select from ${s}.session o where o.id = l.session_id and o.ended_ms is null) as led,
         (select min(next_slot_ms) from ${s}.plan where next_slot_ms is not null) as next_slot_ms,
         (select min(next_ms) from ${s}.operation where ended_ms is null) as next_operation_ms,
         (select min(paused_until_ms) from ${s}.task where paused_until_ms is not null and deleted_ms is null) as next_pause_end_ms,
         exists (select from ${s}.alarm_rule where deleted_ms is null) as ruled,
         (select coalesce(sum(hashint8extended(changed_ms, (id::bigint << 32) | version)), 0)::text from (
            select id, version, changed_ms from ${s}.task order by changed_ms desc limit ${changesWatched}) c) as changes,
         (select coalesce(json_agg(m), '[]') from (
            select ${beatingFields} from ${s}.session where ended_ms is null and (select role from me) = 'node'
            and (role = 'node' or not witnessed or $4)) m) as members,
         ${kind === "bare" ? "" : `${waitingSql(s, kind === "unserved")},`}
         ${kind === "unserved" ? `case when l.session_id = $1 then ${sweepsSql(s)} end as sweeps,` : ""}
         case when l.session_id = $1 and not $3 then (
           select ${notifySql(s, "'beat ' || id || ' ' || beat")}::text from me) end as told
  from ${s}.leadership l cross join ${s}.cluster k`;

/** @param readsBeside see `PostgresOptions` */
export function sessionStore(database: Database, readsBeside = true): SessionStore {
  const look = new WaitingLook(database, readsBeside);
  const wait = new StoreWait(database.clock);
  return {
    open: (identity, nowMs) => open(database, identity, nowMs),
    async beat(sessionId, nowMs, how) {
      const waitMs = wait.medianMs ?? undefined;
      const answered = wait.begin();
      try {
        const pulse = await beat(database, look, sessionId, nowMs, { waitMs, ...how });
        answered();
        return pulse;
      } catch (error) {
        // The time limit has passed, so an answer takes at least that long. Other errors do not show how long an answer takes.
        if (/timeout/.test(messageOf(error))) answered();
        throw error;
      }
    },
    async prompt(sessionId) {
      await database.ask("session-prompt", `select ${notifySql(database.schema, "'prompt ' || $1::bigint")}::text`, [
        sessionId,
      ]);
    },
    end: (sessionId, beat, nowMs, why) => end(database, sessionId, beat, nowMs, why),
    campaign: (sessionId, node, observed, nowMs, deposing) =>
      campaign(database, { sessionId, node, observed, nowMs, deposing }),
    resign: (term, nowMs, why) => resign(database, term, nowMs, why),
    sweep: (nowMs, keepMs) => sweep(database, nowMs, keepMs),
    terms: (limit) => terms(database, limit),
    cluster: () => cluster(database),
    clockVotes: (prompt) => clockVotes(database, prompt),
    shiftClock: (number, shiftMs, nowMs) => shiftClock(database, number, shiftMs, nowMs),
    adoptClock: (change) => adoptClock(database, change),
    noteTimeBack: (nowMs) => noteTimeBack(database, nowMs),
    coordinateBy: (before, next, at) => coordinateBy(database, before, next, at),
    members: () => members(database),
  };
}

async function open(
  database: Database,
  identity: SessionIdentity,
  nowMs: number,
): Promise<{ sessionId: number } | { taken: Member }> {
  const s = database.schema;
  const rows = await database.ask<{ id: number }>(
    "session-open",
    `insert into ${s}.session (${identityColumns}, started_ms, seen_ms)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11) on conflict (node) where ended_ms is null do nothing returning id`,
    [...identityValues(identity), Math.round(nowMs)],
  );
  if (rows[0]) {
    database.memory.opened(rows[0].id, identity, nowMs);
    return { sessionId: rows[0].id };
  }
  const [holder] = await database.ask<MemberRow>(
    "session-holder",
    `select ${memberFields} from ${s}.session where node = $1 and ended_ms is null`,
    [identity.node],
  );
  // The session of the node with this name ended between the two statements, so the name is free now.
  return holder ? { taken: asMember(holder) } : open(database, identity, nowMs);
}

async function beat(
  database: Database,
  look: WaitingLook,
  sessionId: number,
  nowMs: number,
  how: Beat = {},
): Promise<Pulse> {
  const { unserved = false } = how;
  const { row, waiting } = look.isBeside
    ? { row: await beatOnce<PulseRow>(database, "bare", sessionId, nowMs, how), waiting: look.look(sessionId, nowMs) }
    : await beatAndLook(database, look, sessionId, nowMs, how);
  database.told(row);
  if (await wasTold(database, sessionId, row)) return beat(database, look, sessionId, nowMs, how);
  if (row.alive) database.memory.beaten(sessionId, row.my_beat ?? 0, nowMs);
  database.memory.raise({ term: row.term });
  return {
    storeMs: Number(row.store_ms),
    clock: row.clock,
    server: serverOf(row),
    alive: row.alive,
    draining: row.draining,
    leadership: { term: row.term, sessionId: row.leader },
    led: row.led,
    members: row.members.map(asBeating),
    nextSlotMs: row.next_slot_ms,
    nextHeldMs: waiting.next_held_ms,
    nextOperationMs: row.next_operation_ms,
    nextPauseEndMs: row.next_pause_end_ms,
    ruled: row.ruled,
    nextReadyMs: waiting.next_ready_ms,
    nextMineMs: waiting.next_mine_ms,
    nextDirectMs: waiting.next_direct_ms,
    directed: waiting.directed,
    ...(unserved && waiting.unserved && { unserved: waiting.unserved }),
    ...(row.sweeps && { sweeps: row.sweeps }),
    gated: waiting.gated,
    changes: row.changes,
    ended: waiting.ended.map(({ id, ended_ms }) => ({ sessionId: id, endedMs: ended_ms })),
  };
}

async function beatAndLook(database: Database, look: WaitingLook, sessionId: number, nowMs: number, how: Beat) {
  const { clock } = database;
  const beganMono = clock.monotonic();
  let row: (PulseRow & WaitingRow) | undefined;
  try {
    row = await beatOnce<PulseRow & WaitingRow>(database, how.unserved ? "unserved" : "waiting", sessionId, nowMs, how);
    return { row, waiting: row };
  } finally {
    look.took(clock.monotonic() - beganMono, sessionId, row);
  }
}

async function beatOnce<Row>(
  database: Database,
  kind: BeatKind,
  sessionId: number,
  nowMs: number,
  how: Beat,
): Promise<Row> {
  const { witnessed = false, everyone = false, wallMs, waitMs } = how;
  const rounded = (ms: number | undefined) => (ms === undefined ? null : Math.round(ms));
  const values = [sessionId, Math.round(nowMs), witnessed, everyone, rounded(wallMs), rounded(waitMs)];
  const [row] = await database.ask<Row>(beatNames[kind], beatSql(database.schema, kind), values);
  if (!row) throw new Error("the leadership row is missing");
  return row;
}

/**
 * Reports this process's memory to a store that is being recovered. Afterwards the store has this process's session again and accepts its
 * heartbeats, even if other processes have not reported yet.
 * @returns true if this call reported, so that the heartbeat must be repeated
 */
async function wasTold(database: Database, sessionId: number, row: PulseRow): Promise<boolean> {
  const { recovery, memory } = database;
  const known = memory.sessions.get(sessionId);
  if (!recovery || row.my_end) return false;
  if (!row.whole) {
    if (row.alive) return false;
  } else {
    // The store's own log may not show that data was lost. This process's memory shows it if its session had a higher beat than the store
    // has, or if the store lacks the session.
    const lost = known && !known.ended && (row.my_end === null || (row.my_beat ?? 0) <= known.beat);
    if (!lost) return false;
    await recovery.wentBack("a session was further than the store has it");
  }
  await recovery.told();
  return true;
}

/**
 * Ends a session. If it is a session of this process, verdicts that the store had lost are written first: once the session has ended,
 * another worker may start their runs again.
 * @param beat ends the session only if this is its present heartbeat number; null: in any case
 * @returns true if this call ended the session; false if it had ended already or has sent another heartbeat
 */
export async function end(
  database: Database,
  sessionId: number,
  beat: number | null,
  nowMs: number,
  why: string,
): Promise<boolean> {
  const s = database.schema;
  if (database.memory.sessions.has(sessionId)) await database.recovery?.settled();
  const rows = await database.ask(
    "session-end",
    `with ended as (
       update ${s}.session set ended_ms = $3, ended_why = $4
       where id = $1 and ended_ms is null and ($2::bigint is null or beat = $2) returning id, settings ->> 'release' as release),
     -- From now on its release's grace time runs, unless another process of it lives: see tasks/releases.ts.
     seen as (
       update ${s}.release set seen_ms = greatest(seen_ms, $3), settled = false from ended where name = ended.release)
     select id from ended`,
    [sessionId, beat, Math.round(nowMs), why],
  );
  if (rows.length > 0) database.memory.ended(sessionId, why, nowMs);
  return rows.length > 0;
}

async function sweep(database: Database, nowMs: number, keepMs: number): Promise<void> {
  const s = database.schema;
  await database.query(
    "session-sweep",
    `with swept as (
       update ${s}.session o set swept = true where ended_ms < $1 and not swept
       and not exists (select from ${s}.run r where r.session_id = o.id and r.state = ${runState.claimed})),
     forgotten as (delete from ${s}.session where swept and ended_ms < $2)
     delete from ${s}.term where ended_ms < $2`,
    [Math.round(nowMs - sweptAfterMs), Math.round(nowMs - keepMs)],
  );
}

async function cluster(database: Database): Promise<ClusterRecord> {
  const s = database.schema;
  const [row] = await database.ask<ClusterRecord>(
    "session-cluster",
    `select id as "clusterId", coordination, lock_era as "lockEra",
       case when starts_with(coordination_at, coordination || ' ') then substr(coordination_at, length(coordination) + 2)
       end as "coordinationAt"
     from ${s}.cluster`,
  );
  if (!row) throw new Error("the cluster row is missing");
  return row;
}

async function coordinateBy(
  database: Database,
  before: string | null,
  next: string,
  at: string | null,
): Promise<boolean> {
  const s = database.schema;
  const rows = await database.ask(
    "session-coordinate-by",
    `update ${s}.cluster set coordination = $2, coordination_at = $2 || ' ' || $3::text,
       lock_era = case when coordination is null or coordination = $2 then lock_era else nextval('${s}.lock_base') end
     where coordination is not distinct from $1 returning 1`,
    [before, next, at],
  );
  return rows.length > 0;
}

async function members(database: Database): Promise<{ members: Member[]; leadership: Leadership }> {
  const s = database.schema;
  const rows = await database.query<MemberRow>(
    "session-members",
    `select ${memberFields} from ${s}.session where ended_ms is null order by id`,
  );
  const [leader] = await database.query<Leadership>(
    "session-leadership",
    `select term, session_id as "sessionId" from ${s}.leadership`,
  );
  return { members: rows.map(asMember), leadership: leader ?? { term: 0, sessionId: null } };
}
