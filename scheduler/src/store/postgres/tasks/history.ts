import { CarillonError, messageOf } from "../../../base/errors.ts";
import type { HistoryStore, SlotRange, SlotRecord } from "../../../slots/history-store.ts";
import { readClock } from "../cluster/clock.ts";
import type { Database } from "../database.ts";
import { dropUnwantedSql } from "../events/recording.ts";
import { type Maker, makerOf } from "../roles.ts";
import { slotOutcome } from "../states.ts";
import { outcomesOf } from "./accounted.ts";

const dayMs = 86_400_000;
/**
 * How many days ahead partitions exist. If all nodes are stopped for no longer than this, the first one that starts finds its partitions.
 */
const defaultDaysAhead = 7;
/**
 * If this process's role may not drop partitions, another role should drop old days daily. A warning is logged when a partition
 * is older than the retention by more than this number of days.
 */
const dropLateDays = 2;
/**
 * How many days before today the slot table has partitions ready, for slots that are planned after an outage. Partitions for
 * earlier days are created when a slot needs them.
 */
const ledgerDaysBack = 3;

/** The partitioned tables: their time column, and how many days before today need partitions. The slot table also gets past slots. */
const partitioned = {
  slot: { by: "slot_ms", daysBack: ledgerDaysBack },
  run_history: { by: "ended_ms", daysBack: 1 },
  attempt: { by: "ended_ms", daysBack: 1 },
  late_result: { by: "at_ms", daysBack: 1 },
  run_log: { by: "at_ms", daysBack: 1 },
  dead_letter: { by: "ended_ms", daysBack: 1 },
  run_trace: { by: "ended_ms", daysBack: 1 },
  event: { by: "ended_ms", daysBack: 1 },
} as const;
const tables = Object.keys(partitioned) as (keyof typeof partitioned)[];

/** Returns the name of a table's single partition for all days, in a store opened with `partitions: "one"`. */
const wholeOf = (table: string) => `${table}_all`;

/**
 * The longest time, in ms, that a detachment waits for open transactions that have read the table. Other statements on the table
 * queue behind the detachment.
 */
const defaultDetachMostMs = 30_000;
/** If the node that drops partitions vanishes, the server ends its lock after this time, which is longer than the work takes. */
const turnMost = "1h";
const cancelled = "57014";
const dependedOn = "2BP01";

/** How long the origins of traces and the spans of runs are stored at most, in ms. */
const originsKeptMs = 7 * dayMs;
/** How long requests for the ends of runs are stored, in ms. A process that waits for a run's end renews its request each minute. */
const awaitedKeptMs = 3_600_000;

/**
 * Retention by daily partitions. A partition is created as a plain table and then attached, and it is detached before it is dropped. Each
 * step uses the weakest lock that suffices, so that running nodes are not blocked.
 */
export function historyStore(database: Database, detachMostMs = defaultDetachMostMs): HistoryStore {
  const history = { database, detachMostMs };
  return {
    rotate: (nowMs, keepMs, daysAhead) => rotate(history, nowMs, keepMs, daysAhead),
    slots: (taskId, fromMs, toMs, limit) => slotsOf(database, taskId, fromMs, toMs, limit),
    accounted: (taskId, nominalMs, editedMs) =>
      nominalMs.length === 0
        ? Promise.resolve(new Set())
        : database.transaction(async (client) => {
            const found = await outcomesOf(client, database.schema, taskId, nominalMs, { editedMs });
            return new Set(found.keys());
          }),
  };
}

interface History {
  database: Database;
  /** The longest time, in ms, that a detachment waits for transactions that have read the table. */
  detachMostMs: number;
}

async function rotate(
  history: History,
  nowMs: number,
  keepMs: number | null,
  daysAhead = defaultDaysAhead,
): Promise<{ created: string[]; dropped: string[] }> {
  const { database } = history;
  const s = database.schema;
  const today = Math.floor(nowMs / dayMs);
  const present = await database.query<Partition>("history-partitions", partitionsSql, [s]);
  const names = new Set(present.map(({ name }) => name));
  if (inOnePiece(names)) {
    if (keepMs !== null) await deleteOld(database, nowMs, keepMs);
    return { created: [], dropped: [] };
  }
  const missing = missingDays(names, today, daysAhead);
  let maker: Maker | undefined;
  if (missing.length > 0) maker = await makerOf(database);
  if (maker && !maker.may) reportMissing(database, missing, today, maker);
  const created = maker?.may ? await attach(database, missing) : [];
  if (keepMs === null) return { created, dropped: [] };
  const lastKept = Math.min(Math.floor((nowMs - keepMs) / dayMs), today - ledgerDaysBack);
  const isOld = ({ table, name }: Partition) => table in partitioned && (dayOf(name) ?? lastKept) < lastKept;
  const detached = await database.query<Partition>("history-detached", detachedSql, [s]);
  const old = [...present, ...detached].filter(isOld);
  if (old.length > 0) maker ??= await makerOf(database);
  const dropped: string[] = [];
  if (maker?.may) dropped.push(...(await dropOld(history, isOld)));
  else if (old.some(({ name }) => (dayOf(name) ?? lastKept) < lastKept - dropLateDays)) reportKept(database, maker);
  await deleteUnpartitioned(database, nowMs, keepMs);
  return { created, dropped };
}

const missingDays = (present: Set<string>, today: number, daysAhead: number): DayOfTable[] =>
  Object.entries(partitioned)
    .flatMap(([table, { daysBack }]) =>
      daysBetween(today - daysBack, today + daysAhead).map((day) => dayOfTable(table, day)),
    )
    .filter(({ name }) => !present.has(name));

export interface MissingPartitions {
  all: number;
  /** The number of partitions missing for today. While one is missing, a process whose role may not create partitions cannot start. */
  today: number;
  /** True if this connection's role may create the missing partitions. */
  mayMake: boolean;
}

/** Counts the missing partitions without creating them. @param daysAhead default: the number of days for which nodes create partitions */
export async function missingPartitions(database: Database, daysAhead = defaultDaysAhead): Promise<MissingPartitions> {
  const today = Math.floor((await readClock(database)).ms / dayMs);
  const present = await database.query<Partition>("history-partitions", partitionsSql, [database.schema]);
  const names = new Set(present.map(({ name }) => name));
  const missing = inOnePiece(names) ? [] : missingDays(names, today, daysAhead);
  const { may: mayMake } = await makerOf(database);
  return { all: missing.length, today: missing.filter(({ day }) => day === today).length, mayMake };
}

/** Deletes old rows from tables that are not partitioned. */
async function deleteUnpartitioned(database: Database, nowMs: number, keepMs: number): Promise<void> {
  const s = database.schema;
  await database.query("history-arrivals-drop", `delete from ${s}.arrival where at_ms < $1`, [
    Math.round(nowMs - keepMs),
  ]);
  await database.query("history-origins-drop", `delete from ${s}.run_origin where created_ms < $1`, [
    Math.round(nowMs - Math.min(keepMs, originsKeptMs)),
  ]);
  await database.query("history-spans-drop", `delete from ${s}.run_span where created_ms < $1`, [
    Math.round(nowMs - Math.min(keepMs, originsKeptMs)),
  ]);
  await database.query("history-awaited-drop", `delete from ${s}.awaited where since_ms < $1`, [
    Math.round(nowMs - awaitedKeptMs),
  ]);
  await database.query("history-events-drop", dropUnwantedSql(s), [Math.round(nowMs), Math.round(nowMs - keepMs)]);
  await database.query("history-ranges-drop", `delete from ${s}.slot_range where to_ms < $1`, [
    Math.round(nowMs - keepMs),
  ]);
  await database.query("history-moved-drop", `delete from ${s}.moved_slot where greatest(nominal_ms, slot_ms) < $1`, [
    Math.round(nowMs - keepMs),
  ]);
  await database.query("history-operations-drop", `delete from ${s}.operation where ended_ms < $1`, [
    Math.round(nowMs - keepMs),
  ]);
}

const inOnePiece = (partitions: Set<string>): boolean => partitions.has(wholeOf("slot"));

/**
 * Gives each history table a single partition. This is only for a store that no other process uses, because other processes would create
 * daily partitions.
 */
export async function makeWhole(database: Database): Promise<void> {
  const s = database.schema;
  const texts = tables.map(
    (table) => `create table if not exists ${s}.${wholeOf(table)} partition of ${s}.${table} default;`,
  );
  await database.transaction((client) => client.query(texts.join("\n")));
}

/** Applies the retention to a history with a single partition, by deleting rows instead of dropping days. */
async function deleteOld(database: Database, nowMs: number, keepMs: number): Promise<void> {
  const s = database.schema;
  const floorMs = Math.floor((nowMs - keepMs) / dayMs) * dayMs;
  for (const table of tables)
    await database.query(`history-${table}-delete`, `delete from ${s}.${table} where ${partitioned[table].by} < $1`, [
      floorMs,
    ]);
  await deleteUnpartitioned(database, nowMs, keepMs);
}

/** Logs missing partitions of later days. @throws STORE_PARTITIONS if a partition for today is missing */
function reportMissing(database: Database, missing: DayOfTable[], today: number, maker: Maker): void {
  const ahead = missing.filter(({ day }) => day >= today);
  if (ahead.length === 0) return;
  const error = partitionsMissing(ahead, maker);
  const daysLeft = Math.min(...ahead.map(({ day }) => day)) - today;
  if (daysLeft === 0) throw error;
  const { code, hint } = error;
  database.log.warn({ code, hint, daysLeft }, error.message);
}

function reportKept(database: Database, { owner = "the owner of the schema" }: Partial<Maker> = {}): void {
  const hint = `Run \`carillon migrate\` as ${owner}, daily: it drops what is past the retention of the live nodes.`;
  database.log.warn({ hint }, "history past its retention is kept: this role may not drop it");
}

function partitionsMissing(missing: DayOfTable[], { role, owner }: Maker): CarillonError {
  const named = `${missing[0]?.name}${missing.length > 1 ? ` and ${missing.length - 1} more` : ""}`;
  return new CarillonError(
    "STORE_PARTITIONS",
    `partitions for history are missing (${named}), and role ${role} may not make them`,
    { hint: `Run \`carillon migrate\` as ${owner}, daily: it makes them ahead.` },
  );
}

/** SQL: the columns of a row `l` of the slot table, as a SlotRecord. */
export const slotFields = (s: string) => `
  l.slot_ms as "slotMs", case l.outcome when ${slotOutcome.run} then 'run' when ${slotOutcome.skipped} then 'skipped' else 'missed' end as outcome,
  l.run_id as "runId", l.reason, l.term, l.accepted_ms as "acceptedMs",
  (select array_agg(m.nominal_ms::float8 order by m.nominal_ms) from ${s}.moved_slot m
   where m.task_id = l.task_id and m.slot_ms = l.slot_ms) as "nominalMs"`;

async function slotsOf(
  database: Database,
  taskId: number,
  fromMs: number,
  toMs: number,
  limit: number,
): Promise<{ slots: SlotRecord[]; ranges: SlotRange[] }> {
  const s = database.schema;
  const slots = await database.query<SlotRecord>(
    "history-slots",
    `select ${slotFields(s)} from ${s}.slot l where task_id = $1 and slot_ms >= $2 and slot_ms <= $3 order by slot_ms desc limit $4`,
    [taskId, Math.floor(fromMs), Math.ceil(toMs), limit],
  );
  const ranges = await database.query<SlotRange>(
    "history-ranges",
    `select from_ms as "fromMs", to_ms as "toMs", version, slots,
            case outcome when ${slotOutcome.skipped} then 'skipped' else 'missed' end as outcome, reason
     from ${s}.slot_range where task_id = $1 and to_ms >= $2 and from_ms <= $3 order by to_ms desc limit $4`,
    [taskId, Math.floor(fromMs), Math.ceil(toMs), limit],
  );
  return { slots, ranges };
}

/**
 * Drops old partitions, on one node at a time, because two nodes that detach the same partition would make each other fail. The lock
 * belongs to a transaction, because a pooler keeps a transaction on one connection. The transaction does not block the detaching of
 * partitions.
 */
async function dropOld(history: History, isOld: (partition: Partition) => boolean): Promise<string[]> {
  const holder = await history.database.connect();
  try {
    await holder.query(`begin; set local idle_in_transaction_session_timeout = '${turnMost}'`);
    // The statement is sent without parameters: one with parameters would keep its snapshot until the next statement, and detaching would
    // wait for this snapshot.
    const name = holder.escapeLiteral(`${history.database.schema} retention`);
    const { rows: turn } = await holder.query(`select pg_try_advisory_xact_lock(hashtext(${name})) as mine`);
    const dropped = turn[0]?.mine ? await dropAll(history, isOld) : [];
    await holder.query("rollback");
    return dropped;
  } finally {
    await holder.end();
  }
}

/**
 * Detaches and drops partitions. They are detached outside a transaction, as PostgreSQL requires for detaching without blocking
 * readers and writers of other days. An incomplete detachment, which a crash or a long-running reader left, is completed, because
 * it blocks every later detachment of the same table. A partition that a crashed process had detached but not dropped is found by
 * its name.
 */
async function dropAll(history: History, isOld: (partition: Partition) => boolean): Promise<string[]> {
  const { database, detachMostMs } = history;
  const s = database.schema;
  const dropped: string[] = [];
  const left = await database.query<Partition>("history-detached", detachedSql, [s]);
  for (const { name } of left.filter(isOld)) if (await drop(history, name)) dropped.push(name);
  const present = await database.query<Partition>("history-partitions", partitionsSql, [s]);
  const kept = new Set<string>();
  for (const { table, name, pending } of present.filter(isOld)) {
    if (kept.has(table)) continue;
    const how = pending ? "finalize" : "concurrently";
    try {
      await database.limited(`alter table ${s}.${table} detach partition ${s}.${name} ${how}`, detachMostMs);
    } catch (error) {
      if (codeOf(error) !== cancelled) throw error;
      keptForNow(database, name, error);
      kept.add(table);
      continue;
    }
    if (await drop(history, name)) dropped.push(name);
  }
  return dropped;
}

/**
 * Drops a detached table, unless another process has attached it again; the lock is the one that `attach` takes. If a table cannot be
 * dropped, for example because a user's view depends on it, the others are still dropped.
 * @returns true if the table was dropped
 */
async function drop({ database, detachMostMs }: History, name: string): Promise<boolean> {
  const table = `${database.schema}.${name}`;
  try {
    return await database.transaction(async (client) => {
      await client.query(`set local statement_timeout = ${detachMostMs}`);
      await client.query("select pg_advisory_xact_lock(hashtext($1))", [table]);
      const { rows } = await client.query("select from pg_class where oid = to_regclass($1) and not relispartition", [
        table,
      ]);
      if (rows.length > 0) await client.query(`drop table ${table}`);
      return rows.length > 0;
    });
  } catch (error) {
    if (codeOf(error) !== cancelled && codeOf(error) !== dependedOn) throw error;
    keptForNow(database, name, error);
    return false;
  }
}

function keptForNow(database: Database, partition: string, error: unknown): void {
  const why = codeOf(error) === cancelled ? "a transaction that has read it is open" : "something depends on it";
  const fields = { partition, error: messageOf(error) };
  database.log.warn(fields, `history past its retention is kept for now: ${why}`);
}

const codeOf = (error: unknown) => (error as { code?: unknown }).code;

interface Partition {
  table: string;
  name: string;
  /** True if the detaching of this partition began and was not completed. */
  pending: boolean;
}

const partitionsSql = `
  select p.relname as table, c.relname as name, i.inhdetachpending as pending from pg_inherits i
  join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
  where p.relnamespace = to_regnamespace($1)
  order by i.inhdetachpending desc, c.relname`;

/** SQL: selects tables that are named like daily partitions but are not attached. */
const detachedSql = `
  select substring(c.relname from '^(.*)_\\d{8}$') as table, c.relname as name, false as pending from pg_class c
  where c.relnamespace = to_regnamespace($1) and c.relkind = 'r' and not c.relispartition and c.relname ~ '_\\d{8}$'
  order by c.relname`;

/**
 * Creates the missing partitions of the slot table for those days of these slots for which `rotate` creates none.
 * @param slotsMs the times of the slots
 * @throws STORE_PARTITIONS if this connection's role may not create them
 */
export async function ensureLedger(database: Database, slotsMs: number[], nowMs: number): Promise<void> {
  const today = Math.floor(nowMs / dayMs);
  const days = new Set(slotsMs.map((slotMs) => Math.floor(slotMs / dayMs)));
  for (const day of days) if (day >= today - ledgerDaysBack && day <= today + defaultDaysAhead) days.delete(day);
  const inOrder = [...days].sort((a, b) => a - b);
  await attach(
    database,
    inOrder.map((day) => dayOfTable("slot", day)),
  );
}

/**
 * Creates the partitions that a dumped store had.
 * @param names for example slot_20261128; if one of them is a single partition, every table gets a single partition
 */
export async function attachNamed(database: Database, names: string[]): Promise<void> {
  if (inOnePiece(new Set(names))) return makeWhole(database);
  const days = names.flatMap((name) => {
    const [table, day] = [tables.find((one) => name.startsWith(`${one}_2`)), dayOf(name)];
    return table === undefined || day === null ? [] : [dayOfTable(table, day)];
  });
  await attach(database, days);
}

/** The most partitions created in one transaction. Each takes about five locks, and the server has only some thousands in total. */
const madeAtOnce = 100;

/**
 * Creates and attaches partitions under locks that block no reader or writer.
 * @returns the names of the created partitions
 * @throws STORE_PARTITIONS
 */
async function attach(database: Database, missing: DayOfTable[]): Promise<string[]> {
  const s = database.schema;
  const made: string[] = [];
  for (let at = 0; at < missing.length; at += madeAtOnce) {
    const wanted = missing.slice(at, at + madeAtOnce);
    const names = await database.transaction(async (client) => {
      // If two nodes start at the same time, the second waits for the first and then finds its partitions. Both take the locks in the same
      // order.
      await client.query("select pg_advisory_xact_lock(hashtext(name)) from unnest($1::text[]) as name", [
        wanted.map(({ name }) => `${s}.${name}`),
      ]);
      const { rows } = await client.query(partitionsSql, [s]);
      const present = new Set(rows.map(({ name }) => name as string));
      if (inOnePiece(present)) return [];
      const left = wanted.filter(({ name }) => !present.has(name));
      if (left.length === 0) return [];
      const maker = await makerOf(database, client);
      if (!maker.may) throw partitionsMissing(left, maker);
      const texts = left.map(
        ({ table, day, name }) => `
          create table if not exists ${s}.${name} (like ${s}.${table} including all);
          alter table ${s}.${table} attach partition ${s}.${name} for values from (${day * dayMs}) to (${(day + 1) * dayMs});`,
      );
      await client.query(`set local lock_timeout = '2s'; ${texts.join("")}`);
      return left.map(({ name }) => name);
    });
    made.push(...names);
  }
  return made;
}

const daysBetween = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** A partition that is to be created. */
interface DayOfTable {
  table: string;
  day: number;
  name: string;
}

function dayOfTable(table: string, day: number): DayOfTable {
  return { table, day, name: `${table}_${new Date(day * dayMs).toISOString().slice(0, 10).replaceAll("-", "")}` };
}

function dayOf(name: string): number | null {
  const digits = /_(\d{4})(\d\d)(\d\d)$/.exec(name);
  return digits ? Date.UTC(Number(digits[1]), Number(digits[2]) - 1, Number(digits[3])) / dayMs : null;
}
