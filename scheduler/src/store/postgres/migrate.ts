import type { SqlClient } from "../../base/change.ts";
import { CarillonError } from "../../base/errors.ts";
import type { Database } from "./database.ts";
import { isOurs, requireNamesFree } from "./foreign.ts";
import { migrations, servesFrom } from "./migrations/index.ts";

/** The first half of the advisory lock's key, the same in all versions of Carillon. The second half is the hash of the schema's name. */
const lockClass = 0x43_41_52_49;
const oldestServer = 150_000;
/** The longest wait of a migration for a table lock, in ms. Statements of running nodes queue behind this wait. */
const lockTimeoutMs = 2_000;
export const newestKnown = migrations.at(-1)?.number ?? 0;

/**
 * Migrates the schema to this code's version. If several nodes start at once, one migrates under an advisory lock, and the others then find
 * the schema up to date. A schema newer than the code is refused before any write, unless its newest migration records that this version of
 * the code may still work on it.
 * @param mayChange false to refuse an older schema instead of migrating it
 * @param upTo a former version, to reproduce a database of that version
 * @returns the version found and the version afterwards
 * @throws STORE_UNSUPPORTED, STORE_READ_ONLY, STORE_NEWER, STORE_FOREIGN; STORE_OLDER if `mayChange` is false or this role may not change
 * the tables
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
    /** The owner of the existing tables, if this role may not change them; else null. */
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
    // The schema is only created if it is missing, because a role that may use an existing schema may lack the right to create schemas.
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
  /** The number of the newest migration that was applied; 0 if there is none. */
  number: number;
  /** The oldest version of the code that may work on the schema, if the newest migration is newer than this code; else null. */
  serves: number | null;
}

const nothing: SchemaVersion = { number: 0, serves: null };

/** Reads the version of a schema, which may be older or newer than this code, without changing anything. */
export async function schemaVersion(database: Database): Promise<SchemaVersion> {
  const { schema: s } = database;
  const [there] = await database.query<{ present: boolean }>("", `select ${isOurs("$1")} as present`, [
    `${s}.migration`,
  ]);
  return there?.present ? versionOf(s, (sql) => database.query("", sql)) : nothing;
}

/** Reads the rows of the table `migration` as JSON, because its column `serves` was added later than the table. */
async function versionOf(s: string, ask: (sql: string) => Promise<SchemaVersion[]>): Promise<SchemaVersion> {
  const [row] = await ask(
    `select coalesce(max(number), 0)::int as number,
            max(coalesce((to_jsonb(m)->>'serves')::int, number)) filter (where number > ${newestKnown})::int as serves
     from ${s}.migration m`,
  );
  return row ?? nothing;
}

/** Returns true if the schema is not too new for this code. An older schema is not checked here. */
export const servesThisCode = ({ number, serves }: SchemaVersion): boolean =>
  number <= newestKnown || (serves ?? number) <= newestKnown;

/** @throws STORE_NEWER if the schema is too new for this code */
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
  // The text is sent without parameters, so that PostgreSQL executes all its statements as one simple query.
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
