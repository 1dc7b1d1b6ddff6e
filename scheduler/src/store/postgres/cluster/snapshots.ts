import type { HeldSnapshot } from "../../figures.ts";
import type { Database } from "../database.ts";

/**
 * SQL: selects the oldest holder of each kind that prevents vacuum from removing dead rows of this database. A role that may not read the
 * statistics of other roles cannot see when their transactions began, and replication slots have no such time: the age of these holders is
 * known only as a number of transactions.
 */
export const heldSnapshotsSql = `
  select distinct on (kind) kind, holder, ms, transactions from (
    select case backend_type when 'walsender' then 'standby' else 'transaction' end as kind,
           format('%s, pid %s', coalesce(nullif(application_name, ''), usename, backend_type), pid) as holder,
           (extract(epoch from clock_timestamp() - xact_start) * 1000)::float8 as ms, age(coalesce(backend_xmin, backend_xid)) as transactions
    from pg_stat_activity where pid <> pg_backend_pid() and coalesce(backend_xmin, backend_xid) is not null
      and (datname = current_database() or backend_type = 'walsender') and backend_type <> 'autovacuum worker'
    union all
    select 'prepared', gid, (extract(epoch from clock_timestamp() - prepared) * 1000)::float8, age(transaction)
    from pg_prepared_xacts where database = current_database()
    union all
    select 'slot', slot_name, null, age(xmin) from pg_replication_slots where xmin is not null
  ) held order by kind, transactions desc, ms desc nulls last`;

export async function heldSnapshots(database: Database): Promise<HeldSnapshot[]> {
  return database.query<HeldSnapshot>("held-snapshots", heldSnapshotsSql);
}
