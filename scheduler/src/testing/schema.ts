import pg from "pg";

/** Drops the schema of a test tower. @param schema a generated name of letters, digits and _ */
export async function dropSchema(url: string, schema: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`drop schema if exists ${schema} cascade`);
  } finally {
    await client.end();
  }
}

/**
 * Counts the statements on a schema that wait, directly or indirectly, for a lock of a transaction whose connection is idle. A store's own
 * transactions are idle only for moments, so such a transaction belongs to a handler or to the test.
 */
export class HeldUp {
  readonly #url: string;
  readonly #schema: string;
  #client: pg.Client | undefined;

  constructor(url: string, schema: string) {
    this.#url = url;
    this.#schema = schema;
  }

  async count(): Promise<number> {
    if (!this.#client) {
      this.#client = new pg.Client({ connectionString: this.#url });
      await this.#client.connect();
    }
    const { rows } = await this.#client.query(heldUpSql, [this.#schema]);
    return Number(rows[0].held);
  }

  async close(): Promise<void> {
    await this.#client?.end();
    this.#client = undefined;
  }
}

const heldUpSql = `
  with recursive held as (
    select a.pid, b.by from pg_stat_activity a cross join lateral unnest(pg_blocking_pids(a.pid)) b (by)
    where a.datname = current_database() and a.wait_event_type = 'Lock' and position($1 in a.query) > 0
    union
    select held.pid, b.by from held cross join lateral unnest(pg_blocking_pids(held.by)) b (by)
  )
  select count(distinct held.pid) as held from held join pg_stat_activity i on i.pid = held.by where i.state = 'idle in transaction'`;
