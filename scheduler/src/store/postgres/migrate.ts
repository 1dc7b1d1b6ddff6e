import type { SqlClient } from "../../base/change.ts";
import { CarillonError } from "../../base/errors.ts";
import type { Database } from "./database.ts";
import { isOurs, requireNamesFree } from "./foreign.ts";
import { migrations, servesFrom } from "./migrations/index.ts";

/** A constant that all Carillon versions share; together with the schema's hash it is one advisory lock per schema. */
const lockClass = 0x43_41_52_49;
const oldestServer = 150_000;
/** A migration waits at most this long for a table lock, because running nodes would queue behind its wait. */
const lockTimeoutMs = 2_000;
export const newestKnown = migrations.at(-1)?.number ?? 0;

/**
 * Brings the schema to this code's version. Many nodes may start at once: one migrates under an advisory lock, the others then find the
 * schema up to date. A schema newer than the code is refused before any write, unless its newest migration records that code of this age
 * may still work on it.
 * @param mayChange false: an older schema is refused instead
 * @param upTo a former version, to reproduce a database of that version
 * @returns the version found and the version now
 * @throws STORE_NEWER, STORE_OLDER, STORE_UNSUPPORTED, STORE_FOREIGN
 */
export async function migrate(
  database: Database,
  nowMs: number,
  mayChange = true,
  upTo = newestKnown,
): Promise<{ from: number; to: number }> {
  const s = database.schema;
  const [server] = await database.query<{
    version: number;
    recovery: boolean;
    readOnly: boolean;
    present: boolean;
    role: string;
    /** The owner of the existing tables, if this role may not change them. */
    owner: string | null;
  }>(
    "",
    `select current_setting('server_version_num')::int as version, pg_is_in_recovery() as recovery,
            current_setting('transaction_read_only') = 'on' as "readOnly", ${isOurs("$1")} as present, current_user::text as role,
            (select pg_get_userbyid(relowner)::text from pg_class where oid = to_regclass($1) and ${isOurs("$1")} and not pg_has_role(relowner, 'USAGE')) as owner`,
    [`${s}.migration`],
  );
  if (!server || server.version < oldestServer) {
    throw new CarillonError(
      "STORE_UNSUPPORTED",
      `the server is PostgreSQL ${Math.floor((server?.version ?? 0) / 10_000)}`,
      {
        hint: 'Carillon needs PostgreSQL 15 or later. Upgrade the server, give the URL of a newer one, or give "embedded" as the store: a private PostgreSQL.',
      },
    );
  }
  if (server.recovery || server.readOnly) {
    const what = server.recovery ? "is a replica and" : "is set to read only, so it";
    throw new CarillonError("STORE_READ_ONLY", `the server ${what} accepts no writes`, {
      hint: "Give the URL of the primary server.",
    });
  }
  const found = server.present ? await versionOf(s, (sql) => database.query<SchemaVersion>("", sql)) : nothing;
  refuseNewer(found);
  if (found.number >= newestKnown) return { from: found.number, to: found.number };
  if (!mayChange || server.owner !== null) {
    const { role, owner } = server;
    throw new CarillonError(
      "STORE_OLDER",
      `the database is at version ${found.number}, this Carillon needs ${newestKnown}`,
      {
        hint:
          owner === null
            ? "Run `carillon migrate` first; this process was told not to."
            : `Run \`carillon migrate\` as ${owner}, who owns the tables; ${role} may not change them.`,
      },
    );
  }

  return database.transaction(async (client) => {
    await client.query("select pg_advisory_xact_lock($1, hashtext($2))", [lockClass, s]);
    await client.query(`set local lock_timeout = ${lockTimeoutMs}; set local carillon.recovery = on`);
    // A role that may use an existing schema may lack the right to create schemas.
    const { rows: schemas } = await client.query("select to_regnamespace($1) is null as absent", [s]);
    if (schemas[0]?.absent) await client.query(`create schema if not exists ${s}`);
    const { rows: ours } = await client.query(`select ${isOurs("$1")} as present`, [`${s}.migration`]);
    if (!ours[0]?.present) await requireNamesFree(client, s, 0);
    await client.query(
      `create table if not exists ${s}.migration (number int primary key, name text not null, applied_ms bigint not null)`,
    );
    await client.query(`alter table ${s}.migration add column if not exists serves int`);
    const from = await versionOf(s, (sql) => client.query(sql).then(({ rows }) => rows as unknown as SchemaVersion[]));
    refuseNewer(from);
    if (from.number > 0) await requireNamesFree(client, s, from.number);
    for (const migration of migrations.filter(({ number }) => number > from.number && number <= upTo)) {
      await applyMigration(client, s, migration, nowMs);
    }
    return { from: from.number, to: Math.max(upTo, from.number) };
  });
}

/** The version of a schema. */
export interface SchemaVersion {
  /** The newest migration applied; 0: none. */
  number: number;
  /** If the newest migration is newer than this code: the oldest code that may work with it; else null. */
  serves: number | null;
}

const nothing: SchemaVersion = { number: 0, serves: null };

/** Reads the version of a schema, also of older and newer schemas, without changing anything. */
export async function schemaVersion(database: Database): Promise<SchemaVersion> {
  const { schema: s } = database;
  const [there] = await database.query<{ present: boolean }>("", `select ${isOurs("$1")} as present`, [
    `${s}.migration`,
  ]);
  return there?.present ? versionOf(s, (sql) => database.query("", sql)) : nothing;
}

/** Read as JSON, because the column `serves` was added later than the table. */
async function versionOf(s: string, ask: (sql: string) => Promise<SchemaVersion[]>): Promise<SchemaVersion> {
  const [row] = await ask(
    `select coalesce(max(number), 0)::int as number,
            max(coalesce((to_jsonb(m)->>'serves')::int, number)) filter (where number > ${newestKnown})::int as serves
     from ${s}.migration m`,
  );
  return row ?? nothing;
}

/** Returns whether this code may work on the schema, as far as newer schemas are concerned; an older schema is not checked here. */
export const servesThisCode = ({ number, serves }: SchemaVersion): boolean =>
  number <= newestKnown || (serves ?? number) <= newestKnown;

/** @throws STORE_NEWER */
export function refuseNewer(found: SchemaVersion): void {
  if (servesThisCode(found)) return;
  const { number } = found;
  throw new CarillonError("STORE_NEWER", `the database is at version ${number}, this Carillon knows ${newestKnown}`, {
    hint: "Upgrade this process; an older Carillon must not write to a newer database.",
  });
}

async function applyMigration(
  client: SqlClient,
  schema: string,
  migration: (typeof migrations)[number],
  nowMs: number,
): Promise<void> {
  // Sent without parameters, so that the whole text is one simple query.
  await client.query(migration.sql(schema));
  await client.query(`insert into ${schema}.migration (number, name, applied_ms, serves) values ($1, $2, $3, $4)`, [
    migration.number,
    migration.name,
    Math.round(nowMs),
    servesFrom,
  ]);
  if (migration.number === 1) {
    await client.query(`insert into ${schema}.cluster (created_ms) values ($1)`, [Math.round(nowMs)]);
  }
}
