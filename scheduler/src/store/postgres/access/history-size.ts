import type { Database } from "../database.ts";
import { namespaceSql } from "../tasks/task-filter.ts";

/** The maximum number of 8 kB pages that one estimate reads from all partitions of a table, and the minimum from a single partition. */
const pagesMost = 10_000;
const pagesLeast = 20;
/** The assumed size in bytes of a row without its JSON and text columns, including its share of the indexes. */
const rowBytes = 250;
const dayMs = 86_400_000;
const hourMs = 3_600_000;

interface Partition {
  name: string;
  pages: number;
}

/**
 * Estimates how many bytes the history of each namespace takes. It adds up the sizes of payloads, results, errors and log lines in a random
 * sample of each partition's pages, and divides by the sampled fraction of the pages. Small partitions are read completely. Nothing is
 * estimated if no namespace has a quota for history, or if the last estimate is less than `everyMs` old and newer than the last change of a
 * quota.
 */
export async function measureHistory(database: Database, nowMs: number, everyMs: number): Promise<void> {
  const s = database.schema;
  const [found] = await database.query<{ due: boolean }>(
    "history-size-due",
    `select coalesce((select max(measured_ms) from ${s}.history_size), 0) <= greatest($1::bigint, max(changed_ms)) as due
     from ${s}.quota where history is not null having count(*) > 0`,
    [Math.floor(nowMs - everyMs)],
  );
  if (!found?.due) return;
  const sizes = new Map<string, number>();
  for (const [table, rowsSql] of [
    ["run_history", runsSql],
    ["run_log", linesSql(s)],
  ] as const) {
    const partitions = await database.query<Partition>("", partitionsSql, [`${s}.${table}`]);
    const pagesEach = Math.max(pagesLeast, Math.floor(pagesMost / Math.max(1, partitions.length)));
    for (const { name, pages } of partitions) {
      const percent = Math.min(100, (pagesEach / pages) * 100);
      for (const { namespace, bytes } of await database.query<{ namespace: string; bytes: number }>(
        "",
        `select ${namespaceSql("t.name")} as namespace, sum(rows.bytes)::float8 as bytes
         from (${rowsSql(name)}) rows join ${s}.task t on t.id = rows.task_id group by 1`,
        [percent],
      ))
        sizes.set(namespace, (sizes.get(namespace) ?? 0) + (bytes * 100) / percent);
    }
  }
  await database.persist(() =>
    database.query(
      "",
      `with stored as (
         insert into ${s}.history_size (namespace, bytes, measured_ms)
         select *, $3 from unnest($1::text[], $2::bigint[])
         on conflict (namespace) do update set bytes = excluded.bytes, measured_ms = excluded.measured_ms)
       delete from ${s}.history_size where namespace <> all($1)`,
      [[...sizes.keys()], [...sizes.values()].map(Math.round), Math.round(nowMs)],
    ),
  );
}

/** $1 is the name of the table. If a partition is dropped during the estimate, the estimate fails, and the next call makes it again. */
const partitionsSql = `
  select c.oid::regclass::text as name, (pg_relation_size(c.oid) / current_setting('block_size')::int)::int as pages
  from pg_inherits i join pg_class c on c.oid = i.inhrelid
  where i.inhparent = $1::regclass and not i.inhdetachpending and pg_relation_size(c.oid) > 0`;

const bytesSql = (...columns: string[]) =>
  [rowBytes, ...columns.map((column) => `coalesce(pg_column_size(${column}), 0)`)].join(" + ");

/** Returns SQL that selects a sample of a partition's rows; $1 is the percentage of pages to read. */
const runsSql = (partition: string) =>
  `select h.task_id, ${bytesSql("h.payload", "h.result", "h.error")} as bytes from ${partition} h tablesample system ($1)`;

/** Returns SQL that finds the run of each log line, among live runs and runs that ended from an hour before to two days after the line. */
const linesSql = (s: string) => (partition: string) =>
  `select r.task_id, ${bytesSql("l.message", "l.fields")} as bytes from ${partition} l tablesample system ($1),
     lateral (select task_id from ${s}.run where id = l.run_id
       union all
       select task_id from ${s}.run_history
       where id = l.run_id and ended_ms >= l.at_ms - ${hourMs} and ended_ms < l.at_ms + ${2 * dayMs} limit 1) r`;
