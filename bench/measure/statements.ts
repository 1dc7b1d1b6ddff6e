import type pg from "pg";

/**
 * Counts the statements that the server has executed, with the extension pg_stat_statements. If the server has not loaded the extension,
 * `counts` is false and the report says so.
 */
export class StatementCount {
  readonly #client: pg.Client;
  readonly counts: boolean;

  private constructor(client: pg.Client, counts: boolean) {
    this.#client = client;
    this.counts = counts;
  }

  static async on(client: pg.Client): Promise<StatementCount> {
    const { rows } = await client.query("show shared_preload_libraries");
    const loaded = String(rows[0]?.shared_preload_libraries).includes("pg_stat_statements");
    if (loaded) await client.query("create extension if not exists pg_stat_statements");
    return new StatementCount(client, loaded);
  }

  /** The number of statements executed so far; each call adds one. NaN without the extension. */
  async soFar(): Promise<number> {
    if (!this.counts) return Number.NaN;
    const { rows } = await this.#client.query("select sum(calls)::float8 as calls from pg_stat_statements");
    return Number(rows[0]?.calls);
  }
}
