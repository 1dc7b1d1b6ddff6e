import pg from "pg";
import { silentLog } from "../../scheduler/src/log.ts";
import { types } from "../../scheduler/src/store/columns.ts";
import { openPostgres } from "../../scheduler/src/store/postgres.ts";
import { loadLocks } from "./locks/load.ts";
import { toldState } from "./wire.ts";

/** Of the partitions, those of the day before, of the day and of the day after: whatever reads history goes through all. */
const keptDaysMs = 1.5 * 86_400_000;
const fixedCluster = "00000000-0000-4000-8000-000000000001";

/**
 * A schema that seeds take turns in, with partitions for the days around one moment. Made once; between two seeds what the
 * last one wrote is taken out, physically too, so that each finds the same: rows without an order come in that of the heap.
 */
export class Stage {
  readonly schema: string;
  readonly epochMs: number;
  readonly #client: pg.Client;
  readonly #holder: pg.Client;
  #tables: string[] = [];
  #sequences: { name: string; start: number }[] = [];

  private constructor(client: pg.Client, holder: pg.Client, schema: string, epochMs: number) {
    this.#client = client;
    this.#holder = holder;
    this.schema = schema;
    this.epochMs = epochMs;
  }

  static async make(url: string, schema: string, epochMs: number): Promise<Stage> {
    const client = new pg.Client({ connectionString: url, types, options: "-c synchronous_commit=off" });
    await client.connect();
    // Statistics that come by themselves would change plans, and with them the order of rows.
    await client.query("alter system set autovacuum = off");
    await client.query("select pg_reload_conf()");
    await client.query(`drop schema if exists ${schema} cascade`);
    const store = await openPostgres({ url, schema, log: silentLog });
    await store.history.rotate(epochMs, null);
    await loadLocks(store);
    await store.close();
    // In place of pg_notify: heard by the one who tells it alone (see Server), as a notice.
    await client.query(
      `create function ${schema}.told(channel text, payload text) returns void language plpgsql volatile cost 1
       as $$ begin raise notice using errcode = '${toldState}', message = payload; end $$`,
    );
    const holder = new pg.Client({ connectionString: url });
    await holder.connect();
    const stage = new Stage(client, holder, schema, epochMs);
    await stage.#learn();
    return stage;
  }

  /**
   * Empty again, as after the migrations. From then on nothing that is dead is cleared away: when it could be goes by what
   * else is open in the whole server, other seeds' transactions among it, and so would the places of new rows.
   */
  async reset(): Promise<void> {
    await this.#holder.query("rollback");
    // By its file: of one whose rows are all gone again the places are left, and rows would come in another order.
    const { rows } = await this.#client.query(
      "select name from unnest($1::text[]) as name where pg_relation_size(name::regclass) > 0",
      [this.#tables],
    );
    const used = rows.map(({ name }) => name as string);
    if (used.length > 0) await this.#client.query(`truncate ${used.join(", ")} cascade`);
    await this.#client.query(
      `select ${this.#sequences.map(({ name, start }) => `setval('${name}', ${start}, false)`).join(", ")}`,
    );
    await this.#client.query(`update ${this.schema}.leadership set term = 0, session_id = null`);
    await this.#client.query(
      `update ${this.schema}.cluster set coordination = null, lock_era = 0, id = '${fixedCluster}'`,
    );
    await this.#client.query(`vacuum ${this.schema}.leadership, ${this.schema}.cluster`);
    await this.#holder.query("begin isolation level repeatable read");
    await this.#holder.query("select");
  }

  async query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.#client.query({ text, values })).rows as Row[];
  }

  async close(): Promise<void> {
    await this.#holder.query("rollback");
    await this.#client.query(`drop schema if exists ${this.schema} cascade`);
    await Promise.all([this.#client.end(), this.#holder.end()]);
  }

  /** Drops the partitions of other days, such as the real present's, which `openPostgres` makes, and remembers what there is. */
  async #learn(): Promise<void> {
    const schema = this.schema;
    const near = (name: string) => {
      const digits = /_(\d{4})(\d\d)(\d\d)$/.exec(name);
      return (
        !digits ||
        Math.abs(Date.UTC(Number(digits[1]), Number(digits[2]) - 1, Number(digits[3])) - this.epochMs) < keptDaysMs
      );
    };
    const tables = await this.query<{ name: string; kind: string }>(
      "select relname as name, relkind as kind from pg_class where relnamespace = $1::regnamespace and relkind in ('r', 'p')",
      [schema],
    );
    for (const { name } of tables) if (!near(name)) await this.#client.query(`drop table ${schema}.${name}`);
    const kept = new Set(["migration", "leadership", "cluster"]);
    this.#tables = tables
      .filter(({ name, kind }) => kind === "r" && near(name) && !kept.has(name))
      .map(({ name }) => `${schema}.${name}`);
    this.#sequences = await this.query(
      "select format('%I.%I', schemaname, sequencename) as name, start_value::float8 as start from pg_sequences where schemaname = $1",
      [schema],
    );
  }
}
