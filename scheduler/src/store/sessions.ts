import type {
  Beating,
  Leadership,
  Member,
  Pulse,
  SessionIdentity,
  SessionSettings,
  SessionStore,
  Term,
} from "../store.ts";
import type { Database } from "./database.ts";
import { earliestReadySql, unservedSql } from "./ready.ts";

const beatingFields = "id, node, role, beat, witnessed, timeout_ms";
// What does not change is read by those who look; every beat of every process would carry it.
export const memberFields = `${beatingFields}, host, pid, version, started_ms, seen_ms, groups, labels, capacity, settings, tasks`;

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
}

type BeatingRow = Pick<MemberRow, "id" | "node" | "role" | "beat" | "witnessed" | "timeout_ms">;

interface PulseRow {
  store_ms: number;
  alive: boolean;
  term: number;
  leader: number | null;
  led: boolean;
  next_slot_ms: number | null;
  next_held_ms: number | null;
  next_operation_ms: number | null;
  next_ready_ms: number | null;
  next_mine_ms: number | null;
  next_direct_ms: number | null;
  directed: boolean;
  unserved?: string[] | null;
  gated: boolean;
  changes: string;
  members: BeatingRow[];
  ended: { id: number; ended_ms: number }[];
}

/** A claim that a session made as it ended is committed well within this. */
const sweptAfterMs = 600_000;
/**
 * Changes commit in another order than they were stamped, so the latest stamp alone would hide one. Not a window of time:
 * a beat would then cost as much as was changed lately, which may be every task there is.
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
});

export function sessionStore(database: Database): SessionStore {
  const s = database.schema;

  // One round trip an interval is all that an idle node costs: it proves life, samples the clock and learns the rest.
  const beatSql = (unserved: boolean) => `
    with me as (
      update ${s}.session set beat = beat + 1, seen_ms = $2, witnessed = $3 where id = $1 and ended_ms is null
      returning id, beat, role, groups
    )
    select extract(epoch from clock_timestamp()) * 1000 as store_ms,
           exists (select from me) as alive,
           l.term, l.session_id as leader,
           exists (select from ${s}.session o where o.id = l.session_id and o.ended_ms is null) as led,
           (select min(next_slot_ms) from ${s}.plan where next_slot_ms is not null) as next_slot_ms,
           (select min(due_ms) from ${s}.run where state = 0 and gate > 1) as next_held_ms,
           (select min(next_ms) from ${s}.operation where ended_ms is null) as next_operation_ms,
           (${earliestReadySql(s, `${s}.worker_group g join me on g.name = any (me.groups)`, "g.id")}) as next_ready_ms,
           (${earliestReadySql(s, "me", "-me.id")}) as next_mine_ms,
           (${earliestReadySql(s, "(select 0) as g (id)", "g.id")}) as next_direct_ms,
           exists (select from ${s}.run where state = 2 and group_id < 0) as directed,
           ${unserved ? `case when l.session_id = $1 then (${unservedSql(s)}) end as unserved,` : ""}
           exists (select from ${s}.gate) or exists (select from ${s}.gathering) or exists (select from ${s}.arrival) as gated,
           (select coalesce(sum(hashint8extended(changed_ms, (id::bigint << 32) | version)), 0)::text from (
              select id, version, changed_ms from ${s}.task order by changed_ms desc limit ${changesWatched}) c) as changes,
           (select coalesce(json_agg(m), '[]') from (
              select ${beatingFields} from ${s}.session where ended_ms is null and (select role from me) = 'node'
              and (role = 'node' or not witnessed or $4)) m) as members,
           (select coalesce(json_agg(e), '[]') from (
              select o.id, o.ended_ms from ${s}.session o where o.ended_ms is not null and not o.swept
              and exists (select from ${s}.run r where r.session_id = o.id and r.state = 3)) e) as ended,
           case when l.session_id = $1 and not $3 then (
             select pg_notify('${channelOf(s)}', 'beat ' || id || ' ' || beat)::text from me) end as told
    from ${s}.leadership l`;

  // PostgreSQL makes ready all parts of a statement before it runs the first: what is asked seldom would double every beat.
  const [plainBeatSql, unservedBeatSql] = [beatSql(false), beatSql(true)];

  // Only one that is vacant, or whose session has ended: silence alone is judged before, by ending the session.
  const campaignSql = `
    with won as (
      update ${s}.leadership l set term = l.term + 1, session_id = $1
      where l.term = $3
        and (l.session_id is null or $5 or exists (select from ${s}.session o where o.id = l.session_id and o.ended_ms is not null))
        and exists (select from ${s}.session me where me.id = $1 and me.ended_ms is null)
      returning l.term
    ), closed as (
      update ${s}.term t set ended_ms = $4, ended_why = coalesce(o.ended_why, case when $5 then 'deposed: another is first in line' else 'left vacant' end)
      from won, ${s}.session o where t.term = won.term - 1 and t.ended_ms is null and o.id = t.session_id
    ), told as (
      insert into ${s}.term (term, session_id, node, elected_ms) select term, $1, $2, $4 from won
    )
    select term, pg_notify('${channelOf(s)}', 'leadership') from won`;

  return {
    async open(identity: SessionIdentity, nowMs: number) {
      const rows = await database.ask<{ id: number }>(
        "session-open",
        `insert into ${s}.session (node, role, host, pid, version, timeout_ms, started_ms, seen_ms, groups, labels, capacity, settings)
         values ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9, $10, $11) on conflict (node) where ended_ms is null do nothing returning id`,
        [
          identity.node,
          identity.role,
          identity.host,
          identity.pid,
          identity.version,
          identity.timeoutMs,
          Math.round(nowMs),
          identity.groups ?? [],
          JSON.stringify(identity.labels ?? {}),
          identity.capacity ?? null,
          identity.settings ? JSON.stringify(identity.settings) : null,
        ],
      );
      if (rows[0]) return { sessionId: rows[0].id };
      const [holder] = await database.ask<MemberRow>(
        "session-holder",
        `select ${memberFields} from ${s}.session where node = $1 and ended_ms is null`,
        [identity.node],
      );
      // It ended between the two statements: the name is free now.
      return holder ? { taken: asMember(holder) } : this.open(identity, nowMs);
    },

    async beat(sessionId, nowMs, { witnessed = false, everyone = false, unserved = false } = {}): Promise<Pulse> {
      const values = [sessionId, Math.round(nowMs), witnessed, everyone];
      const [row] = await (unserved
        ? database.ask<PulseRow>("session-beat-unserved", unservedBeatSql, values)
        : database.ask<PulseRow>("session-beat", plainBeatSql, values));
      if (!row) throw new Error("the leadership row is missing");
      return {
        storeMs: Number(row.store_ms),
        alive: row.alive,
        leadership: { term: row.term, sessionId: row.leader },
        led: row.led,
        members: row.members.map(asBeating),
        nextSlotMs: row.next_slot_ms,
        nextHeldMs: row.next_held_ms,
        nextOperationMs: row.next_operation_ms,
        nextReadyMs: row.next_ready_ms,
        nextMineMs: row.next_mine_ms,
        nextDirectMs: row.next_direct_ms,
        directed: row.directed,
        ...(row.unserved && { unserved: row.unserved }),
        gated: row.gated,
        changes: row.changes,
        ended: row.ended.map(({ id, ended_ms }) => ({ sessionId: id, endedMs: ended_ms })),
      };
    },

    async end(sessionId, beat, nowMs, why) {
      const rows = await database.ask(
        "session-end",
        `update ${s}.session set ended_ms = $3, ended_why = $4
         where id = $1 and ended_ms is null and ($2::bigint is null or beat = $2) returning id`,
        [sessionId, beat, Math.round(nowMs), why],
      );
      return rows.length > 0;
    },

    async campaign(sessionId, node, observed: Leadership, nowMs, deposing = false) {
      const rows = await database.ask<{ term: number }>("session-campaign", campaignSql, [
        sessionId,
        node,
        observed.term,
        Math.round(nowMs),
        deposing,
      ]);
      return rows[0]?.term ?? null;
    },

    async resign(term, nowMs, why) {
      await database.ask(
        "session-resign",
        `with down as (update ${s}.leadership set session_id = null where term = $1 returning term),
              closed as (update ${s}.term t set ended_ms = $2, ended_why = $3 from down
                         where t.term = down.term and t.ended_ms is null)
         select pg_notify('${channelOf(s)}', 'leadership') from down`,
        [term, Math.round(nowMs), why],
      );
    },

    async sweep(nowMs, keepMs) {
      await database.query(
        "session-sweep",
        `with swept as (
           update ${s}.session o set swept = true where ended_ms < $1 and not swept
           and not exists (select from ${s}.run r where r.session_id = o.id and r.state = 3)),
         forgotten as (delete from ${s}.session where swept and ended_ms < $2)
         delete from ${s}.term where ended_ms < $2`,
        [Math.round(nowMs - sweptAfterMs), Math.round(nowMs - keepMs)],
      );
    },

    async terms(limit): Promise<Term[]> {
      return database.query<Term>(
        "session-terms",
        // A leader that died leaves its term open until another takes the next one; it led no longer than its session.
        `select t.term, t.node, t.session_id as "sessionId", t.elected_ms as "electedMs",
                coalesce(t.ended_ms, o.ended_ms) as "endedMs", coalesce(t.ended_why, o.ended_why) as "endedWhy"
         from ${s}.term t left join ${s}.session o on o.id = t.session_id order by t.term desc limit $1`,
        [limit],
      );
    },

    async cluster() {
      const [row] = await database.ask<{ clusterId: string; coordination: string | null; lockEra: number }>(
        "session-cluster",
        `select id as "clusterId", coordination, lock_era as "lockEra" from ${s}.cluster`,
      );
      if (!row) throw new Error("the cluster row is missing");
      return row;
    },

    async coordinateBy(before, next) {
      const rows = await database.ask(
        "session-coordinate-by",
        `update ${s}.cluster set coordination = $2,
           lock_era = case when coordination is null then lock_era else nextval('${s}.lock_base') end
         where coordination is not distinct from $1 returning 1`,
        [before, next],
      );
      return rows.length > 0;
    },

    async members() {
      const rows = await database.query<MemberRow>(
        "session-members",
        `select ${memberFields} from ${s}.session where ended_ms is null order by id`,
      );
      const [leader] = await database.query<Leadership>(
        "session-leadership",
        `select term, session_id as "sessionId" from ${s}.leadership`,
      );
      return { members: rows.map(asMember), leadership: leader ?? { term: 0, sessionId: null } };
    },
  };
}

/** One channel a schema. `schema` is quoted already. */
export function channelOf(schema: string): string {
  return `carillon:${schema.slice(1, -1)}`.replaceAll("'", "''");
}
