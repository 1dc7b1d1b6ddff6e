import type { Arena } from "./arena.ts";

/**
 * Creates the extension pg_stat_statements.
 * @returns a function that queries the total execution time (µs) and the number of all statements that the extension has counted
 * in this database, including the bench's own few queries
 */
export async function spentBy({ client }: Arena): Promise<() => Promise<{ us: number; calls: number }>> {
  await client.query("create extension if not exists pg_stat_statements");
  return async () => {
    const { rows } = await client.query(
      `select coalesce(sum(total_exec_time), 0) * 1000 as us, coalesce(sum(calls), 0)::float8 as calls from pg_stat_statements
       where dbid = (select oid from pg_database where datname = current_database())`,
    );
    return { us: Number(rows[0].us), calls: Number(rows[0].calls) };
  };
}
