/** Reads the facts that `carillon doctor --production` needs beside those of inspect.ts. */
import { withDatabase } from "../with-database.ts";

export interface ProductionFacts {
  /** Server settings that are off and without which a crash can lose acknowledged work, such as "fsync". */
  unsafe: string[];
  /** Standbys that are connected, as far as this role may see them. */
  standbys: number;
  /** True if the server archives its write-ahead log. */
  archives: boolean;
  /** The most connections that roles without privileges may have, and the number of open ones. */
  connections: { most: number; open: number };
  role: string;
  isSuperuser: boolean;
  /** True if alarms have been looked for, which means that some process had channels. */
  watched: boolean;
  users: number;
  /** Number of users who are admins of everything and can sign in. */
  admins: number;
  /** Users whose password is still the initial one that they were given. */
  temporary: string[];
}

/** Requires that the schema has this code's version. @throws STORE_UNREACHABLE, STORE_REFUSED */
export const inspectProduction = (url: string, schema: string): Promise<ProductionFacts> =>
  withDatabase({ url, schema }, async (database) => {
    const s = database.schema;
    const [row] = await database.query<Omit<ProductionFacts, "connections"> & { most: number; open: number }>(
      "",
      `select (select coalesce(array_agg(name order by name), '{}') from pg_settings
               where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off') as unsafe,
              (select count(*)::int from pg_stat_replication) as standbys,
              current_setting('archive_mode') <> 'off' as archives,
              current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as most,
              (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as open,
              current_user::text as role, (select rolsuper from pg_roles where rolname = current_user) as "isSuperuser",
              exists (select from ${s}.alarm_seen where task_id = 0) as watched,
              count(u.id)::int as users, count(*) filter (where u.role = 'admin' and u.disabled_ms is null)::int as admins,
              coalesce(array_agg(u.name::text order by u.name) filter (where u.temporary_hash = u.hash), '{}') as temporary
       from (select from pg_settings limit 1) one left join ${s}.user_account u on u.removed_ms is null`,
    );
    const { most, open, ...facts } = row as NonNullable<typeof row>;
    return { ...facts, connections: { most, open } };
  });
