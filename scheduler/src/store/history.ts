import { messageOf } from "../errors.ts";
import type { HistoryStore, SlotRange, SlotRecord } from "../store.ts";
import type { Database } from "./database.ts";

const dayMs = 86_400_000;
/** A node that was away for this long still finds a partition for what it writes. */
const daysAhead = 7;
/** Slots caught up after an outage lie in the past; days before these are made when a slot needs one. */
const ledgerDaysBack = 3;

/** Partitioned tables and the days each needs before today: the ledger takes slots of the past. */
const partitioned = {
  slot: ledgerDaysBack,
  run_history: 1,
  attempt: 1,
  late_result: 1,
  run_log: 1,
  dead_letter: 1,
  run_trace: 1,
} as const;

/** Whoever has read a table in a transaction that stays open is waited for no longer: other work waits behind this. */
const defaultDetachMostMs = 30_000;
const cancelled = "57014";
const dependedOn = "2BP01";

/** From where a run comes is asked when it is claimed. */
const originsKeptMs = 7 * dayMs;

/**
 * Retention by partition, one a day. A partition is made as a plain table and attached, and detached before it is
 * dropped, each under the lightest lock that does it, so running nodes are not held up.
 */
export function historyStore(database: Database, detachMostMs = defaultDetachMostMs): HistoryStore {
  const s = database.schema;
  return {
    async rotate(nowMs, keepMs) {
      const today = Math.floor(nowMs / dayMs);
      const dropped: string[] = [];
      const present = await database.query<Partition>("history-partitions", partitionsSql, [s]);
      const names = new Set(present.map(({ name }) => name));
      const wanted = Object.entries(partitioned).flatMap(([table, daysBack]) =>
        daysBetween(today - daysBack, today + daysAhead).map((day) => dayOfTable(table, day)),
      );
      const created = await attach(
        database,
        wanted.filter(({ name }) => !names.has(name)),
      );
      if (keepMs === null) return { created, dropped };
      const lastKept = Math.min(Math.floor((nowMs - keepMs) / dayMs), today - ledgerDaysBack);
      const isOld = ({ table, name }: Partition) => table in partitioned && (dayOf(name) ?? lastKept) < lastKept;
      const detached = await database.query<Partition>("history-detached", detachedSql, [s]);
      if ([...present, ...detached].some(isOld)) dropped.push(...(await dropOld(isOld)));
      await database.query("history-arrivals-drop", `delete from ${s}.arrival where at_ms < $1`, [
        Math.round(nowMs - keepMs),
      ]);
      await database.query("history-origins-drop", `delete from ${s}.run_origin where created_ms < $1`, [
        Math.round(nowMs - Math.min(keepMs, originsKeptMs)),
      ]);
      await database.query("history-spans-drop", `delete from ${s}.run_span where created_ms < $1`, [
        Math.round(nowMs - Math.min(keepMs, originsKeptMs)),
      ]);
      await database.query("history-ranges-drop", `delete from ${s}.slot_range where to_ms < $1`, [
        Math.round(nowMs - keepMs),
      ]);
      await database.query("history-operations-drop", `delete from ${s}.operation where ended_ms < $1`, [
        Math.round(nowMs - keepMs),
      ]);
      return { created, dropped };
    },

    async slots(taskId, fromMs, toMs, limit) {
      const slots = await database.query<SlotRecord>(
        "history-slots",
        `select slot_ms as "slotMs", case outcome when 1 then 'run' when 2 then 'skipped' else 'missed' end as outcome,
                run_id as "runId", reason, term, accepted_ms as "acceptedMs"
         from ${s}.slot where task_id = $1 and slot_ms >= $2 and slot_ms <= $3 order by slot_ms desc limit $4`,
        [taskId, Math.floor(fromMs), Math.ceil(toMs), limit],
      );
      const ranges = await database.query<SlotRange>(
        "history-ranges",
        `select from_ms as "fromMs", to_ms as "toMs", version, slots,
                case outcome when 2 then 'skipped' else 'missed' end as outcome, reason
         from ${s}.slot_range where task_id = $1 and to_ms >= $2 and from_ms <= $3 order by to_ms desc limit $4`,
        [taskId, Math.floor(fromMs), Math.ceil(toMs), limit],
      );
      return { slots, ranges };
    },
  };

  /**
   * One node at a time: two that detach the same partition would make each other fail. Outside a transaction, as
   * PostgreSQL demands of it: readers and writers of the other days go on meanwhile. A detachment that a crash or a long
   * reader left half done is finished, since it stands in the way of every later one of its table. A day whose process died
   * between the two is found by its name.
   */
  async function dropOld(isOld: (partition: Partition) => boolean): Promise<string[]> {
    const dropped: string[] = [];
    const client = await database.connect();
    try {
      const { rows: turn } = await client.query("select pg_try_advisory_lock(hashtext($1)) as mine", [
        `${s} retention`,
      ]);
      if (!turn[0]?.mine) return dropped;
      await client.query(`set statement_timeout = ${detachMostMs}`);
      const { rows: left } = await client.query<Partition>(detachedSql, [s]);
      for (const { name } of left.filter(isOld)) if (await drop(name)) dropped.push(name);
      const { rows } = await client.query<Partition>(partitionsSql, [s]);
      const kept = new Set<string>();
      for (const { table, name, pending } of rows.filter(isOld)) {
        if (kept.has(table)) continue;
        const how = pending ? "finalize" : "concurrently";
        try {
          await client.query(`alter table ${s}.${table} detach partition ${s}.${name} ${how}`);
        } catch (error) {
          if (codeOf(error) !== cancelled) throw error;
          keptForNow(name, error);
          kept.add(table);
          continue;
        }
        if (await drop(name)) dropped.push(name);
      }
      return dropped;
    } finally {
      await client.end();
    }
  }

  /**
   * A detached one, unless somebody has made it a partition again: under the lock of those who do. What cannot go, such as one
   * that a view of somebody's reads, holds nothing else up.
   */
  async function drop(name: string): Promise<boolean> {
    const table = `${s}.${name}`;
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
      keptForNow(name, error);
      return false;
    }
  }

  function keptForNow(partition: string, error: unknown): void {
    const why = codeOf(error) === cancelled ? "a transaction that has read it is open" : "something depends on it";
    const fields = { partition, error: messageOf(error) };
    database.log.warn(fields, `history past its retention is kept for now: ${why}`);
  }
}

const codeOf = (error: unknown) => (error as { code?: unknown }).code;

interface Partition {
  table: string;
  name: string;
  /** Its detachment began and did not end. */
  pending: boolean;
}

const partitionsSql = `
  select p.relname as table, c.relname as name, i.inhdetachpending as pending from pg_inherits i
  join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
  where p.relnamespace = to_regnamespace($1)
  order by i.inhdetachpending desc, c.relname`;

/** Tables that are called as days of ours are, and are no partitions. */
const detachedSql = `
  select substring(c.relname from '^(.*)_\\d{8}$') as table, c.relname as name, false as pending from pg_class c
  where c.relnamespace = to_regnamespace($1) and c.relkind = 'r' and not c.relispartition and c.relname ~ '_\\d{8}$'
  order by c.relname`;

/** Makes the ledger's partitions for slots of days that have none. @param slotsMs times of the slots */
export async function ensureLedger(database: Database, slotsMs: number[], nowMs: number): Promise<void> {
  const today = Math.floor(nowMs / dayMs);
  const days = new Set(slotsMs.map((slotMs) => Math.floor(slotMs / dayMs)));
  for (const day of days) if (day >= today - ledgerDaysBack && day <= today + daysAhead) days.delete(day);
  const inOrder = [...days].sort((a, b) => a - b);
  await attach(
    database,
    inOrder.map((day) => dayOfTable("slot", day)),
  );
}

/** So many in one transaction: each is some five locks, of which the server has some thousands for everybody. */
const madeAtOnce = 100;

/** Under locks that hold up no reader or writer. @returns the names of those that were made */
async function attach(database: Database, missing: DayOfTable[]): Promise<string[]> {
  const s = database.schema;
  const made: string[] = [];
  for (let at = 0; at < missing.length; at += madeAtOnce) {
    const wanted = missing.slice(at, at + madeAtOnce);
    const names = await database.transaction(async (client) => {
      // Two nodes may start at once; the locks, taken in one order, make the second one find the first one's work.
      await client.query("select pg_advisory_xact_lock(hashtext(name)) from unnest($1::text[]) as name", [
        wanted.map(({ name }) => `${s}.${name}`),
      ]);
      const { rows } = await client.query(partitionsSql, [s]);
      const present = new Set(rows.map(({ name }) => name));
      const left = wanted.filter(({ name }) => !present.has(name));
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

/** A partition that there is to be. */
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
