import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import type pg from "pg";
import { CarillonError, isCarillonError, messageOf } from "../../../base/errors.ts";
import { version } from "../../../base/version.ts";
import type { Database } from "../database.ts";
import { ownRelations } from "../foreign.ts";
import { newestKnown, schemaVersion } from "../migrate.ts";
import { storeError } from "../store-errors.ts";
import { withDatabase } from "../with-database.ts";
import {
  checksum,
  type DumpEnd,
  type DumpedSequence,
  type DumpedTable,
  type DumpHeader,
  dumpFormat,
} from "./dump-file.ts";

/**
 * Tables that a dump leaves out: `migration`, which a load fills itself, and tables with the state of running processes, such as holders of
 * locks, pending signals, awaited runs and signed-in browsers. Sessions are dumped, because history refers to them for node names, and a
 * load ends them. Grace locks are dumped, because their rows contain the counters of their fences.
 */
const notCarried = [
  "migration",
  "lock",
  "lock_session",
  "signal",
  "signal_poll",
  "awaited",
  "intact",
  "recovery_session",
  "sign_in",
];

/** The number of rows fetched at once. The payload and the result of each row may have 256 KiB each. */
const fetched = 200;

export interface Dumped {
  header: DumpHeader;
  /** The number of dumped rows, by table. */
  rows: Record<string, number>;
  /** The nodes whose sessions were open during the dump, so that their processes went on changing the store. */
  openSessions: string[];
}

/**
 * Writes the store's state at one moment to a file, which gets its name only when it is complete. Other processes are not blocked.
 * @throws STORE_OLDER, STORE_NEWER, STORE_UNSUPPORTED, OUTPUT_FAILED, STORE_…
 */
export const dumpStore = (url: string, schema: string, path: string): Promise<Dumped> =>
  withDatabase({ url, schema }, async (database) => {
    const migration = await requirePresent(database, schema);
    const client = await database.connect();
    try {
      return await dumpOver(client, database.schema, { schema, migration, path });
    } catch (error) {
      throw storeError(error);
    } finally {
      await client.end();
    }
  });

async function requirePresent(database: Database, schema: string): Promise<number> {
  const { number } = await schemaVersion(database);
  if (number === newestKnown) return number;
  if (number === 0)
    throw new CarillonError("STORE_UNSUPPORTED", `no Carillon has used schema ${schema} of this store yet`, {
      hint: "Check --store and --schema.",
    });
  const isOlder = number < newestKnown;
  throw new CarillonError(
    isOlder ? "STORE_OLDER" : "STORE_NEWER",
    `the database is at version ${number}, this Carillon dumps ${newestKnown}`,
    { hint: isOlder ? "Run `carillon migrate` first." : "Dump it with the Carillon that works on it." },
  );
}

/** Does the same over a given connection. @param migration the version of the schema */
export async function dumpOver(
  client: pg.ClientBase,
  s: string,
  { schema, migration, path }: { schema: string; migration: number; path: string },
): Promise<Dumped> {
  await client.query("begin isolation level repeatable read read only; set local bytea_output = hex");
  const tables = await tablesOf(client, s);
  const { rows: now } = await client.query(
    "select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms, current_setting('server_version') as server",
  );
  const { rows: open } = await client.query(
    `select format('%s %s (process %s on %s)', role, node, pid, host) as name from ${s}.session where ended_ms is null order by 1`,
  );
  const header: DumpHeader = {
    carillon: "store",
    format: dumpFormat,
    version,
    migration,
    schema,
    server: now[0].server,
    atMs: Math.round(now[0].ms),
    tables,
  };
  const rows: Record<string, number> = {};
  await writeWhole(path, linesOf(client, s, header, rows));
  await client.query("commit");
  return { header, rows, openSessions: open.map(({ name }) => name) };
}

async function* linesOf(
  client: pg.ClientBase,
  s: string,
  header: DumpHeader,
  counts: Record<string, number>,
): AsyncGenerator<string> {
  const frame = createHash("sha256");
  const framed = (object: object) => {
    const line = JSON.stringify(object);
    frame.update(line).update("\n");
    return `${line}\n`;
  };
  yield framed(header);
  for (const table of header.tables) {
    const sum = checksum();
    const values = table.columns.map((column) => `"${column}"::text`).join(", ");
    // A token may refer to the token that created it, which must be loaded first.
    const order = table.name === "token" ? "order by id" : "";
    await client.query(
      `declare dumped no scroll cursor for select to_json(array[${values}]::text[])::text as line from ${s}.${table.name} ${order}`,
    );
    for (;;) {
      const { rows } = await client.query(`fetch ${fetched} from dumped`);
      if (rows.length === 0) break;
      for (const { line } of rows) sum.add(line);
      yield rows.map(({ line }) => `${line}\n`).join("");
    }
    await client.query("close dumped");
    const end = sum.end(table.name);
    counts[table.name] = end.rows;
    yield framed(end);
  }
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  // Sequences are not part of the snapshot. They are read last, so their values are not below any number in the snapshot.
  const sequences = await sequencesOf(client, s);
  frame.update(JSON.stringify(sequences));
  const end: DumpEnd = { end: true, rows: total, sequences, sha256: frame.digest("hex") };
  yield `${JSON.stringify(end)}\n`;
}

async function writeWhole(path: string, lines: AsyncIterable<string>): Promise<void> {
  const draft = `${path}.part`;
  try {
    await pipeline(lines, createWriteStream(draft, { mode: 0o600, flush: true }));
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    const failure = storeError(error);
    if (isCarillonError(failure) || (error as NodeJS.ErrnoException).path === undefined) throw failure;
    throw new CarillonError("OUTPUT_FAILED", `${path} could not be written: ${messageOf(error)}`, { cause: error });
  }
}

/** Returns Carillon's tables, ordered so that each table comes after the tables that it refers to. */
async function tablesOf(client: pg.ClientBase, s: string): Promise<DumpedTable[]> {
  const { rows } = await client.query(
    `select c.relname as name,
       (select json_agg(attname order by attnum) from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns,
       (select coalesce(json_agg(p.relname order by p.relname), '[]') from pg_inherits i join pg_class p on p.oid = i.inhrelid where i.inhparent = c.oid) as partitions,
       (select coalesce(json_agg(f.relname), '[]') from pg_constraint k join pg_class f on f.oid = k.confrelid where k.conrelid = c.oid and k.contype = 'f') as after
     from pg_class c
     where c.relnamespace = to_regnamespace($1) and c.relkind in ('r', 'p') and not c.relispartition and c.relname = any($2) and c.relname <> all($3)
     order by c.relname`,
    [s, ownRelations(), notCarried],
  );
  const ordered: DumpedTable[] = [];
  const place = (name: string): void => {
    const row = rows.find((one) => one.name === name);
    if (row === undefined || ordered.some((one) => one.name === name)) return;
    for (const other of row.after as string[]) if (other !== name) place(other);
    ordered.push({ name, columns: row.columns, partitions: row.partitions });
  };
  for (const { name } of rows) place(name);
  return ordered;
}

async function sequencesOf(client: pg.ClientBase, s: string): Promise<DumpedSequence[]> {
  const { rows } = await client.query(
    "select relname as name from pg_class where relnamespace = to_regnamespace($1) and relkind = 'S' and relname = any($2) order by relname",
    [s, ownRelations()],
  );
  const found: DumpedSequence[] = [];
  for (const { name } of rows) {
    const { rows: values } = await client.query(
      `select last_value::text as value, is_called as called from ${s}."${name}"`,
    );
    found.push({ name, value: values[0].value, called: values[0].called });
  }
  return found;
}
