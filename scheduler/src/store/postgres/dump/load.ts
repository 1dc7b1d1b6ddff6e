import type { Change, SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import { readRawClock } from "../cluster/clock.ts";
import type { Database } from "../database.ts";
import { takeOverSql } from "../events/recording.ts";
import { migrate, newestKnown } from "../migrate.ts";
import { migrations } from "../migrations/index.ts";
import { openPostgres } from "../postgres.ts";
import { goOnAbove, type Skipped } from "../recovery/restored.ts";
import { attachNamed } from "../tasks/history.ts";
import { withDatabase } from "../with-database.ts";
import { type DumpEnd, type DumpedTable, type DumpHeader, type DumpReader, readDump } from "./dump-file.ts";

/** The most rows of one INSERT, and the most characters of its rows. */
const batchRows = 500;
const batchChars = 4_000_000;

export interface Loaded {
  header: DumpHeader;
  /** The number of rows, by table, counted in the store after the load. */
  rows: Record<string, number>;
  next: Skipped;
  /** The newest migration of the schema after the load. */
  migration: number;
}

/**
 * Creates a store from a dump, in a schema that is empty or does not exist. The file is read twice, because it must be checked
 * completely before the first statement. All rows are committed together. New ids start above every id that the source can have issued.
 * @throws FILE_INVALID, STORE_NOT_EMPTY, STORE_NEWER, or the errors of opening a store
 */
export async function loadStore(url: string, schema: string, path: string, by: Omit<Change, "nowMs">): Promise<Loaded> {
  const nothing = async () => undefined;
  const header = await readDump(path, {
    header: async (found) => requireKnown(found),
    row: nothing,
    tableEnd: nothing,
    end: nothing,
  });
  return withDatabase({ url, schema }, async (database) => {
    const before = await requireEmpty(database, schema);
    try {
      const change = { ...by, nowMs: Math.round(await readRawClock(database)) };
      await migrate(database, change.nowMs, true, header.migration);
      await attachNamed(
        database,
        header.tables.flatMap(({ partitions }) => partitions),
      );
      const goOn = (client: SqlClient) => goOnAbove(client, database.schema, schema, change);
      const isOlder = header.migration < newestKnown;
      const { rows, next: first } = await database.transaction(async (client) => {
        const counted = await loadRows(client, database.schema, path, change.nowMs);
        return { rows: counted, next: isOlder ? undefined : await goOn(client) };
      });
      // An older schema lacks columns for some of the numbers. Until they are set, the store counts as incomplete. If this process is
      // killed before that, the next process that starts recovers the store.
      if (isOlder) await migrate(database, change.nowMs, true);
      const next = first ?? (await database.transaction(goOn));
      // Opening the store creates the partitions of the coming days.
      await (await openPostgres({ url, schema, failFast: true })).close();
      return { header, rows, next, migration: newestKnown };
    } catch (error) {
      // If this fails too, the next load is refused with STORE_NOT_EMPTY, whose hint says what to do.
      await Promise.allSettled([takeBack(database, before)]);
      throw error;
    }
  });
}

function requireKnown({ migration, version }: DumpHeader): void {
  if (migrations.some(({ number }) => number === migration)) return;
  throw new CarillonError(
    "STORE_NEWER",
    `the file's schema is at version ${migration}, this Carillon knows ${newestKnown}`,
    {
      hint: `Load it with Carillon ${version} or newer.`,
    },
  );
}

interface Before {
  /** True if the schema did not exist before the load. */
  isNew: boolean;
  /** Object ids of the functions that were in the schema before the load. */
  functions: string[];
}

/** Drops everything that a failed load has created, in one transaction: the schema, or all objects in it that did not exist before. */
const takeBack = (database: Database, { isNew, functions }: Before): Promise<void> =>
  database.transaction(async (client) => {
    const s = database.schema;
    const { rows } = isNew
      ? { rows: [{ drop: `drop schema if exists ${s} cascade` }] }
      : await client.query(
          `select format('drop table if exists ${s}.%I cascade', relname) as drop from pg_class
           where relnamespace = to_regnamespace($1) and relkind in ('r', 'p') and not relispartition
           union all
           select format('drop sequence if exists ${s}.%I cascade', relname) from pg_class
           where relnamespace = to_regnamespace($1) and relkind = 'S'
           union all
           select format('drop function if exists %s cascade', oid::regprocedure) from pg_proc
           where pronamespace = to_regnamespace($1) and not oid = any($2)`,
          [s, functions],
        );
    for (const { drop } of rows) await client.query(drop as string);
  });

/** Checks that the schema contains no tables, views or sequences. @throws STORE_NOT_EMPTY */
async function requireEmpty(database: Database, schema: string): Promise<Before> {
  const [found] = await database.query<Before & { relations: number }>(
    "",
    `select to_regnamespace($1) is null as "isNew",
            array(select oid::text from pg_proc where pronamespace = to_regnamespace($1)) as functions,
            (select count(*)::int from pg_class where relnamespace = to_regnamespace($1) and relkind in ('r', 'p', 'v', 'm', 'S', 'f')) as relations`,
    [database.schema],
  );
  if (found?.relations === 0) return found;
  throw new CarillonError(
    "STORE_NOT_EMPTY",
    `schema ${schema} of this store has ${found?.relations} tables and sequences`,
    {
      hint: "Nothing was changed. Load into a new database, another --schema or another --directory; or drop the schema if nothing in it counts.",
    },
  );
}

async function loadRows(client: SqlClient, s: string, path: string, nowMs: number): Promise<Loaded["rows"]> {
  await client.query("set local carillon.recovery = on");
  const rows: Record<string, number> = {};
  await readDump(path, new Loading(client, s, rows));
  // The schema of an older file has no table of events.
  const { rows: events } = await client.query("select where to_regclass($1) is not null", [`${s}.event`]);
  if (events.length > 0) await client.query(takeOverSql(s));
  await client.query(
    `update ${s}.session set ended_ms = $1, ended_why = 'its store was moved' where ended_ms is null`,
    [nowMs],
  );
  return rows;
}

class Loading implements DumpReader {
  readonly #client: SqlClient;
  readonly #s: string;
  readonly #counts: Record<string, number>;
  #types = new Map<string, string>();
  #batch: string[] = [];
  #chars = 0;

  constructor(client: SqlClient, s: string, counts: Record<string, number>) {
    this.#client = client;
    this.#s = s;
    this.#counts = counts;
  }

  async header({ tables }: DumpHeader): Promise<void> {
    const { rows } = await this.#client.query(
      `select c.relname || '.' || attname as column, format_type(atttypid, atttypmod) as type from pg_attribute
       join pg_class c on c.oid = attrelid where c.relnamespace = to_regnamespace($1) and attnum > 0`,
      [this.#s],
    );
    this.#types = new Map(rows.map(({ column, type }) => [column as string, type as string]));
    // Migrations insert initial rows into some tables, which the rows of the dump replace.
    await this.#client.query(`truncate ${tables.map(({ name }) => `${this.#s}."${name}"`).join(", ")} cascade`);
  }

  async row(table: DumpedTable, line: string): Promise<void> {
    this.#batch.push(line);
    this.#chars += line.length;
    if (this.#batch.length >= batchRows || this.#chars >= batchChars) await this.#write(table);
  }

  async #write({ name, columns }: DumpedTable): Promise<void> {
    if (this.#batch.length === 0) return;
    const values = columns.map((column, at) => `(l->>${at})::${this.#types.get(`${name}.${column}`)}`);
    await this.#client.query(
      `insert into ${this.#s}."${name}" (${columns.map((column) => `"${column}"`).join(", ")}) overriding system value
       select ${values.join(", ")} from json_array_elements($1::json) l`,
      [`[${this.#batch.join(",")}]`],
    );
    this.#batch = [];
    this.#chars = 0;
  }

  async tableEnd(table: DumpedTable, { rows: written }: { rows: number }): Promise<void> {
    await this.#write(table);
    const { rows } = await this.#client.query(`select count(*) as there from ${this.#s}."${table.name}"`);
    const there = Number(rows[0]?.there);
    if (there !== written)
      throw new CarillonError(
        "FILE_INVALID",
        `${table.name} has ${written} rows in the file, and ${there} in the store`,
        {
          path: table.name,
          hint: "Nothing was loaded. Dump the store again.",
        },
      );
    this.#counts[table.name] = there;
  }

  async end({ sequences }: DumpEnd): Promise<void> {
    // The sequence `signals_until` concerns only the processes of the source: it is the time until which signals are written to their
    // table.
    for (const { name, value, called } of sequences.filter((one) => one.name !== "signals_until"))
      await this.#client.query(
        "select setval(c.oid, $3::bigint, $4) from pg_class c where relnamespace = to_regnamespace($1) and relkind = 'S' and relname = $2",
        [this.#s, name, value, called],
      );
  }
}
