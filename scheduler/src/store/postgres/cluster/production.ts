/** Reads the facts that `carillon doctor --production` needs in addition to those of inspect.ts. */
import { withDatabase } from "../with-database.ts";

export interface ProductionFacts {
  /** Names of server settings that are off although a crash can then lose acknowledged writes, for example "fsync". */
  unsafe: string[];
  /** The number of connected standbys that this role may see. */
  standbys: number;
  /** True if the server archives its write-ahead log. */
  archives: boolean;
  /** The most connections that roles which are not superusers may have in total, and the number of open ones. */
  connections: { most: number; open: number };
  role: string;
  isSuperuser: boolean;
  /** True if alarms have been evaluated, so some process has had channels for them. */
  watched: boolean;
  users: number;
  /** The number of users with the role admin who are not disabled. */
  admins: number;
  /** Names of users who have not changed the initial password that they were given. */
  temporary: string[];
}

/** Reads the facts. The schema must have the version of this code. @throws STORE_UNREACHABLE, STORE_REFUSED or another STORE_… error */
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
