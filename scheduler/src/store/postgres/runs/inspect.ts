/**
 * Reads facts that show an operator whether a store is healthy. This module changes nothing and does not migrate: the schema may be older
 * or newer than this code, or have no Carillon tables.
 */

import { type Clock, systemClock } from "../../../base/clock.ts";
import { isCarillonError } from "../../../base/errors.ts";
import type { ClusterClock, TimeBack } from "../../../cluster/clock-votes.ts";
import type { Leadership, Member } from "../../../cluster/session-store.ts";
import type { TaskRecord } from "../../../task/task-record.ts";
import type { HeldSnapshot } from "../../figures.ts";
import { timeBack } from "../cluster/clock.ts";
import { sessionStore } from "../cluster/sessions.ts";
import { heldSnapshots } from "../cluster/snapshots.ts";
import type { Database } from "../database.ts";
import { timeoutMsSql } from "../enqueue/run-rows.ts";
import { newestKnown, type SchemaVersion, schemaVersion, servesThisCode } from "../migrate.ts";
import { migrations } from "../migrations/index.ts";
import type { Pooling } from "../pooler.ts";
import { queryOf } from "../query.ts";
import { inDoubtSql } from "../recovery/recovery.ts";
import { type Maker, makerOf, rightsLacking } from "../roles.ts";
import { runState } from "../states.ts";
import { type MissingPartitions, missingPartitions } from "../tasks/history.ts";
import { taskStore } from "../tasks/tasks.ts";
import { withDatabase } from "../with-database.ts";
import { KnownZones } from "../zones/known-zones.ts";

export interface ServerFacts {
  /** The server's version, such as "15.14". */
  version: string;
  /** The server's version as a number, such as 150014. */
  versionNumber: number;
  /** True for a standby, or for a server that is set to refuse writes. */
  readOnly: boolean;
  /** The round trip to the server in ms, the shortest of a few samples. */
  roundTripMs: number;
  /** How far this machine's wall clock is behind the store's clock, in ms; negative if it is ahead. Accurate to half the round trip. */
  clockOffsetMs: number;
  /** The shift that the cluster adds to the store's clock, in ms; not 0 while that clock is wrong. */
  clockShiftMs: number;
  /** Since when the shift is not 0, in cluster time; null if it is 0. */
  clockSinceMs: number | null;
  /** The number of the schema's newest migration; 0 if the schema contains no Carillon tables. */
  migration: number;
  migrationKnown: number;
  /** False if the schema is newer than this code, so that this code must not work on it. */
  serves: boolean;
  /** The mode of the pooler in front of the server, or "none". */
  pooling: Pooling;
  /** True if the server's JIT compiler is on for this session. That is so only through a pooler, where session settings do not work. */
  compiles: boolean;
  /** For each kind, the oldest holder that prevents vacuum from removing dead rows. */
  snapshots: HeldSnapshot[];
  /** The result of a test write of 16 MB to the server's disk; null if the role is not allowed to make it. */
  disk: "room" | "full" | null;
}

export interface OverdueRuns {
  task: string;
  group: string;
  count: number;
  oldestDueMs: number;
}

/** A group at its limit of concurrent runs that has overdue runs. */
export interface FullGroup {
  group: string;
  limit: number;
  waiting: number;
  oldestDueMs: number;
}

export interface StuckRun {
  runId: number;
  task: string;
  node: string | null;
  claimedMs: number;
  why: string;
}

/** The last recovery, after the store was promoted or restored, or lacked acknowledged writes. */
export interface RecoveryFacts {
  beganMs: number;
  /** When the recovery ended; null if it is in progress, or if another recovery began before it ended. */
  endedMs: number | null;
  /** By how many ms the store went back; null if no process could determine it. */
  backMs: number | null;
  /** Number of runs that were restored. */
  runs: number;
  verdicts: number;
  /** Names of nodes that were active before the recovery and did not report in it. */
  missing: string[];
  /** The most runs that the missing nodes may have started and that may have been started a second time. */
  inDoubt: number;
}

export interface ClusterFacts {
  nowMs: number;
  members: Member[];
  leadership: Leadership;
  tasks: TaskRecord[];
  /** For each partitioned table, the end of its last partition, in epoch milliseconds. */
  partitions: { table: string; untilMs: number }[];
  /** The role that owns the partitioned tables, and whether this connection's role may create partitions. */
  maker: Maker;
  /** Tables and sequences on which this connection's role lacks a right that a node needs. */
  rightsLacking: string[];
  /** Ready runs that are late, by task. Runs whose group is at its limit are left out. */
  overdue: OverdueRuns[];
  fullGroups: FullGroup[];
  stuck: StuckRun[];
  unplanned: { task: string; slotMs: number }[];
  /** The number of zones whose rules are in the store, and the newest version of their time zone database (null if unknown or no zones). */
  zones: { count: number; newest: string | null };
  /** Names of tasks that are still planned by the rules from before a change of their zone. */
  zonesBehind: string[];
  /** The last recovery; undefined if there has been none. */
  recovery: RecoveryFacts | undefined;
  /** Set if cluster time is now before a time that it had reached. */
  timeBack: TimeBack | undefined;
  clusterId: string;
  /** The coordination in use: the id of a service, "store", or null before the first node has started. */
  coordination: string | null;
  /** Node names that moved from one process to another and back within the last hour, so that two processes must be using them. */
  sharedNames: { node: string; processes: string[] }[];
  /** Addresses that moved from one process to another and back within the last hour. */
  sharedAddresses: { address: string; processes: string[] }[];
}

export interface Inspection {
  server: ServerFacts;
  /** The facts about the cluster; undefined if this code cannot read the schema. */
  cluster: ClusterFacts | undefined;
}

const clockSamples = 5;
/**
 * How many numbers the test query collects. With the least work memory, a set of this size is written to disk: 16 MB, as much as a segment
 * of the write-ahead log.
 */
const spilledNumbers = 1_000_000;
const most = 20;
/** Ready runs that are late by more than this, in ms, are reported. */
const overdueMs = 5_000;
/** Claimed runs that should have started or ended longer ago than this, in ms, are reported. */
const stuckMs = 60_000;
const sharedNameMs = 3_600_000;
/** Slots that are late by more than this, in ms, and still not planned are reported. */
const unplannedMs = 2_000;

/**
 * Reads the facts about the server and, if this code can read the schema, about the cluster.
 * @throws STORE_UNREACHABLE, STORE_REFUSED or another STORE_… error
 */
export const inspectPostgres = (url: string, schema: string, clock: Clock = systemClock): Promise<Inspection> =>
  withDatabase({ url, schema, clock }, async (database) => {
    const server = await serverFacts(database, clock);
    const readable = server.migration >= server.migrationKnown && server.serves;
    return { server, cluster: readable ? await clusterFacts(database, clock, server) : undefined };
  });

/** Returns true if the schema contains Carillon's tables. Read-only commands check this, so that they do not create a schema. */
export const hasCluster = (url: string, schema: string): Promise<boolean> =>
  withDatabase({ url, schema }, async (database) => (await schemaVersion(database)).number > 0);

export interface SchemaFacts {
  version: SchemaVersion;
  /** Partitions of the history that are missing up to `daysAhead`; none are counted if this code cannot read the schema. */
  missing: MissingPartitions;
}

/**
 * Compares a schema with the schema that this code needs, without changing anything.
 * @throws STORE_UNREACHABLE, STORE_REFUSED or another STORE_… error
 */
export const inspectSchema = (url: string, schema: string, daysAhead?: number): Promise<SchemaFacts> =>
  withDatabase({ url, schema }, async (database) => {
    const version = await schemaVersion(database);
    const isRead = version.number >= newestKnown && servesThisCode(version);
    const missing = isRead ? await missingPartitions(database, daysAhead) : { all: 0, today: 0, mayMake: true };
    return { version, missing };
  });

async function serverFacts(database: Database, clock: Clock): Promise<ServerFacts> {
  const [row] = await database.query<{ text: string; number: number; read_only: boolean; compiles: boolean }>(
    "",
    `select current_setting('jit')::bool as compiles, current_setting('server_version') as text, current_setting('server_version_num')::int as number,
            pg_is_in_recovery() or current_setting('transaction_read_only')::bool as read_only`,
  );
  const found = await schemaVersion(database);
  const { number: migration } = found;
  let roundTripMs = Number.POSITIVE_INFINITY;
  let clockOffsetMs = 0;
  for (let i = 0; i < clockSamples; i++) {
    const began = clock.monotonic();
    const [answer] = await database.query<{ ms: number }>(
      "",
      "select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms",
    );
    const tookMs = clock.monotonic() - began;
    if (tookMs >= roundTripMs) continue;
    roundTripMs = tookMs;
    clockOffsetMs = (answer?.ms ?? 0) - (clock.wall() - tookMs / 2);
  }
  const { shiftMs, sinceMs } = await clockState(database, migration);
  return {
    version: (row?.text ?? "").split(" ")[0] ?? "",
    versionNumber: row?.number ?? 0,
    readOnly: row?.read_only ?? false,
    roundTripMs,
    clockOffsetMs,
    clockShiftMs: shiftMs,
    clockSinceMs: sinceMs,
    migration,
    migrationKnown: newestKnown,
    serves: servesThisCode(found),
    pooling: database.pooling === "none" ? "none" : await modeOf(database),
    compiles: row?.compiles ?? false,
    snapshots: await heldSnapshots(database),
    disk: await diskOf(database),
  };
}

/** Makes the server write a temporary file, which a standby may do too, and which the server deletes at the end of the transaction. */
async function diskOf(database: Database): Promise<ServerFacts["disk"]> {
  try {
    await database.transaction(async (client) => {
      await client.query("set local work_mem = '64kB'");
      await client.query(`select count(*) from generate_series(1, ${spilledNumbers})`);
    });
    return "room";
  } catch (error) {
    if (isCarillonError(error, "STORE_FULL")) return "full";
    // SQL state 53400: the server's temp_file_limit does not allow this role temporary files of this size.
    if (isCarillonError(error) && (error.cause as { code?: string } | undefined)?.code === "53400") return null;
    throw error;
  }
}

/** Reads the shift of the store's clock. A schema from before the migration "store-clock" has none. */
async function clockState(database: Database, migration: number): Promise<Pick<ClusterClock, "shiftMs" | "sinceMs">> {
  const none = { shiftMs: 0, sinceMs: null };
  const since = migrations.find(({ name }) => name === "store-clock")?.number ?? Number.POSITIVE_INFINITY;
  if (migration < since) return none;
  const [row] = await database.query<Pick<ClusterClock, "shiftMs" | "sinceMs">>(
    "",
    `select clock_shift_ms as "shiftMs", clock_since_ms as "sinceMs" from ${database.schema}.cluster`,
  );
  return row ?? none;
}

async function modeOf(database: Database): Promise<Pooling> {
  const client = await database.connect();
  try {
    return await database.poolingOf(client);
  } finally {
    await client.end();
  }
}

async function clusterFacts(database: Database, clock: Clock, server: ServerFacts): Promise<ClusterFacts> {
  const s = database.schema;
  const nowMs = Math.round(clock.wall() + server.clockOffsetMs + server.clockShiftMs);
  const { members, leadership } = await sessionStore(database).members();
  const tasks = await taskStore(database).list();
  const partitions = await database.query<{ table: string; untilMs: number }>(
    "",
    `select p.relname as table,
            max((regexp_match(pg_get_expr(c.relpartbound, c.oid), $$TO \\('?(\\d+)'?\\)$$))[1]::bigint) as "untilMs"
     from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
     where p.relnamespace = to_regnamespace($1) and p.relkind = 'p' group by p.relname order by p.relname`,
    [s],
  );
  const fullSql = `select l.group_id, l.most from ${s}.group_limit l where l.most <= (
    select count(*) from ${s}.task t join ${s}.run r on r.task_id = t.id and r.state = ${runState.claimed} where t.group_id = l.group_id)`;
  const overdue = await database.query<OverdueRuns>(
    "",
    `select t.name as task, g.name as group, count(*) as count, min(r.due_ms) as "oldestDueMs"
     from ${s}.run r join ${s}.task t on t.id = r.task_id join ${s}.worker_group g on g.id = t.group_id
     where r.state = ${runState.ready} and r.due_ms < $1 and g.id not in (select group_id from (${fullSql}) f) group by t.name, g.name order by min(r.due_ms) limit ${most}`,
    [nowMs - overdueMs],
  );
  const fullGroups = await database.query<FullGroup>(
    "",
    `select g.name as group, f.most as limit, count(*)::int as waiting, min(r.due_ms) as "oldestDueMs"
     from (${fullSql}) f join ${s}.worker_group g on g.id = f.group_id join ${s}.task t on t.group_id = g.id
          join ${s}.run r on r.task_id = t.id and r.state = ${runState.ready} and r.due_ms < $1
     group by g.name, f.most order by g.name limit ${most}`,
    [nowMs - overdueMs],
  );
  const stuck = await database.query<StuckRun>(
    "",
    `select r.id as "runId", t.name as task, o.node, r.claimed_ms as "claimedMs",
            case when o.ended_ms is not null then 'its worker''s session ended' when r.started_ms is null then 'claimed and never started'
                 else 'past its timeout' end as why
     from ${s}.run r join ${s}.task t on t.id = r.task_id left join ${s}.session o on o.id = r.session_id
     where r.state = ${runState.claimed} and (o.ended_ms < $1 or (r.started_ms is null and greatest(r.due_ms, r.claimed_ms) < $1)
           or r.started_ms + ${timeoutMsSql} < $1)
     order by r.claimed_ms limit ${most}`,
    [nowMs - stuckMs],
  );
  const unplanned = await database.query<{ task: string; slotMs: number }>(
    "",
    `select t.name as task, p.next_slot_ms as "slotMs" from ${s}.plan p join ${s}.task t on t.id = p.task_id
     where p.next_slot_ms < $1 order by p.next_slot_ms limit ${most}`,
    [nowMs - unplannedMs],
  );
  const [recovery] = await database.query<RecoveryFacts>(
    "",
    `select began_ms as "beganMs", ended_ms as "endedMs", back_ms as "backMs", runs, verdicts, missing, ${inDoubtSql(s, "r")} as "inDoubt"
     from ${s}.recovery r order by number desc limit 1`,
  );
  /** SQL: selects names or addresses that moved from one process to another and back. A restart only moves a name to a new process. */
  const takingTurns = (what: string, of: string) => `
    with recent as (select id, ${of} as what, node, host, pid from ${s}.session where started_ms > $1 and ${of} is not null)
    select a.what as ${what}, array_agg(distinct format(${what === "node" ? "'pid %s on %s', p.pid, p.host" : "'%s (pid %s on %s)', p.node, p.pid, p.host"})) as processes
    from recent a join recent b on b.what = a.what and b.id > a.id and (b.host, b.pid) <> (a.host, a.pid)
         join recent c on c.what = a.what and c.id > b.id and (c.host, c.pid) = (a.host, a.pid)
         join recent p on p.id in (a.id, b.id)
    group by a.what order by a.what limit ${most}`;
  const sinceMs = [nowMs - sharedNameMs];
  const sharedNames = await database.query<ClusterFacts["sharedNames"][number]>(
    "",
    takingTurns("node", "node"),
    sinceMs,
  );
  const sharedAddresses = await database.query<ClusterFacts["sharedAddresses"][number]>(
    "",
    takingTurns("address", "settings->>'address'"),
    sinceMs,
  );
  const { clusterId, coordination } = await sessionStore(database).cluster();
  const [zones] = await database.query<ClusterFacts["zones"]>(
    "",
    `select count(distinct name)::int as count, nullif(max(data), '') as newest from ${s}.zone_rules`,
  );
  const known = new KnownZones(database);
  await known.refresh();
  const changes = known.changedZones();
  const behind = changes.length === 0 ? [] : await known.plannedBefore(queryOf(database), changes, 0, most);
  return {
    nowMs,
    members,
    leadership,
    tasks,
    partitions,
    maker: await makerOf(database),
    rightsLacking: await rightsLacking(database),
    overdue,
    fullGroups,
    stuck,
    unplanned,
    zones: zones ?? { count: 0, newest: null },
    zonesBehind: behind.map(({ name }) => name),
    recovery,
    timeBack: await timeBack(database, nowMs),
    clusterId,
    coordination,
    sharedNames,
    sharedAddresses,
  };
}
