/** Reads the facts that `carillon doctor --production` needs beside those of inspect.ts. */
import { withDatabase } from "../with-database.ts";

export interface ProductionFacts {
  /** Settings of the server without which a crash can lose acknowledged work, if they are off: "fsync". */
  unsafe: string[];
  /** Standbys that are connected, as far as this role may see them. */
  standbys: number;
  /** The server archives its log. */
  archives: boolean;
  /** Connections that roles without privileges may have, and those that are open. */
  connections: { most: number; open: number };
  role: string;
  isSuperuser: boolean;
  /** Alarms have been looked for: some process had channels. */
  watched: boolean;
  users: number;
  /** Admins of everything who can sign in. */
  admins: number;
  /** Users whose password is still the one that was handed to them. */
  temporary: string[];
}

/** The schema must be this code's. @throws STORE_UNREACHABLE, STORE_REFUSED */
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
