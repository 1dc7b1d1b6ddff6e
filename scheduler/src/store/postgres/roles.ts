/** Database rights: one role owns the schema and changes it; another role may have only the rights that a node needs. */
import type { SqlClient } from "../../base/change.ts";
import { CarillonError } from "../../base/errors.ts";
import { type Database, quoteIdentifier } from "./database.ts";
import { ownRelations } from "./foreign.ts";
import { withDatabase } from "./with-database.ts";

/** The result of the check whether this connection's role may create and drop partitions. */
export interface Maker {
  /** The role of this connection. */
  role: string;
  /** The role that owns the partitioned tables. */
  owner: string;
  /** True if `role` may create and drop the partitions of these tables. */
  may: boolean;
}

const makerSql = `
  select current_user::text as role, min(pg_get_userbyid(relowner)::text) as owner,
         coalesce(bool_and(pg_has_role(relowner, 'USAGE') and has_schema_privilege(relnamespace, 'CREATE')), false) as may
  from pg_class where relnamespace = to_regnamespace($1) and relkind = 'p'`;

export async function makerOf(database: Database, client?: SqlClient): Promise<Maker> {
  const values = [database.schema];
  const rows = client ? (await client.query(makerSql, values)).rows : await database.query("", makerSql, values);
  return rows[0] as unknown as Maker;
}

/** Returns the names of tables and sequences on which this connection's role lacks a right that a node needs. */
export async function rightsLacking(database: Database): Promise<string[]> {
  const rows = await database.query<{ name: string }>(
    "",
    `select relname as name from pg_class c where relnamespace = to_regnamespace($1) and relname = any($2) and not case
       when relkind = 'S' then has_sequence_privilege(oid, 'USAGE') and has_sequence_privilege(oid, 'SELECT')
                             and has_sequence_privilege(oid, 'UPDATE')
       when relkind in ('r', 'p') then has_table_privilege(oid, 'SELECT') and has_table_privilege(oid, 'INSERT')
                                       and has_table_privilege(oid, 'UPDATE') and has_table_privilege(oid, 'DELETE')
       else true end
     order by relname`,
    [database.schema, ownRelations()],
  );
  return rows.map(({ name }) => name);
}

/**
 * Grants a role only the rights that a node needs: to read and write the tables, draw numbers, and call the functions. The grant also
 * covers tables that this connection's role creates later. It can be repeated.
 * @throws STORE_REFUSED if the role does not exist, or if this connection's role does not own the schema's tables
 */
export async function grantWork(url: string, schema: string, role: string): Promise<void> {
  const to = quoteIdentifier(role);
  const rights = [
    ["tables", "select, insert, update, delete"],
    ["sequences", "usage, select, update"],
    ["functions", "execute"],
  ];
  await withDatabase({ url, schema }, (database) =>
    database.transaction(async (client) => {
      const s = database.schema;
      // The lock serialises grants, because two concurrent grants would make each other fail.
      await client.query("select pg_advisory_xact_lock(hashtext($1))", [`${s} grants`]);
      const { rows } = await client.query("select from pg_roles where rolname = $1", [role]);
      if (rows.length === 0)
        throw new CarillonError("STORE_REFUSED", `there is no role ${role} on this server`, {
          hint: `Make it first, as one who may: CREATE ROLE ${to} LOGIN PASSWORD '…'.`,
        });
      const maker = await makerOf(database, client);
      if (!maker.may)
        throw new CarillonError("STORE_REFUSED", `role ${maker.role} may not grant rights on schema ${schema}`, {
          hint: `Run it as ${maker.owner}, who owns the tables.`,
        });
      const texts = rights.flatMap(([what, some]) => [
        `grant ${some} on all ${what} in schema ${s} to ${to}`,
        `alter default privileges in schema ${s} grant ${some} on ${what} to ${to}`,
      ]);
      await client.query([`grant usage on schema ${s} to ${to}`, ...texts].join("; "));
    }),
  );
}
