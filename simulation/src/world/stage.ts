import pg from "pg";
import { silentLog } from "../../../scheduler/src/base/log.ts";
import { types } from "../../../scheduler/src/store/postgres/columns.ts";
import { openPostgres } from "../../../scheduler/src/store/postgres/postgres.ts";
import { loadLocks } from "../locks/load.ts";
import type { Plan } from "../plan/plan.ts";
import { toldState } from "./wire.ts";

/** Partitions further than this from `epochMs` are dropped, because every query of history visits all partitions. */
const keptDaysMs = 1.5 * 86_400_000;
/** Tables with exactly one row, which the scheduler updates and never replaces. */
const singles = ["leadership", "cluster", "audit_chain"];
const fixedCluster = "00000000-0000-4000-8000-000000000001";

/**
 * A schema that is created once and that one seed after another uses, with partitions for the days around one moment. Between two
 * seeds the rows are removed physically, so that each seed finds the same state: a query without an order returns rows in heap order.
 */
export class Stage {
  readonly schema: string;
  readonly epochMs: number;
  readonly #client: pg.Client;
  readonly #holder: pg.Client;
  #tables: string[] = [];
  /** The row of each single-row table as the migrations created it, by table. */
  readonly #singles = new Map<string, unknown>();
  #sequences: { name: string; start: number }[] = [];
  /** The timeline's name, as the schema's `log_timeline()` returns it. Each promotion of the standby changes the name. */
  #timeline = "";
  #promoted = 0;
  /** Each table with its copy in the standby's schema, and its columns that are not generated. */
  readonly #copied: { name: string; copy: string; columns: string }[] = [];
  /** The sequences' state on the standby. The schema of copies contains the state of the standby's tables. */
  #kept: { name: string; value: number }[] = [];

  private constructor(client: pg.Client, holder: pg.Client, schema: string, epochMs: number) {
    this.#client = client;
    this.#holder = holder;
    this.schema = schema;
    this.epochMs = epochMs;
  }

  static async make(url: string, schema: string, epochMs: number): Promise<Stage> {
    const client = new pg.Client({ connectionString: url, types, options: "-c synchronous_commit=off" });
    await client.connect();
    // Autovacuum also updates statistics, which would change plans and so the order of rows.
    await client.query("alter system set autovacuum = off");
    await client.query("select pg_reload_conf()");
    await client.query(`drop schema if exists ${schema} cascade`);
    const store = await openPostgres({ url, schema, log: silentLog });
    await store.history.rotate(epochMs, null);
    await loadLocks(store);
    await store.close();
    // Replaces NOTIFY by a notice, which only the sending connection receives (see Server).
    await client.query(
      `create or replace function ${schema}.tell(said text) returns void language plpgsql volatile cost 1
       as $$ begin raise notice using errcode = '${toldState}', message = said; end $$`,
    );
    const holder = new pg.Client({ connectionString: url });
    await holder.connect();
    const stage = new Stage(client, holder, schema, epochMs);
    await stage.#learn();
    await stage.#setTimeline("log");
    await stage.#makeCopies();
    return stage;
  }

  /**
   * Restores the schema's state after the migrations. Then `#holder` opens a snapshot, which keeps vacuum from removing dead rows until
   * the next reset. Otherwise the moment of their removal, and so the position of new rows, would depend on transactions of other seeds.
   */
  async reset(timeline: Plan["timeline"]): Promise<void> {
    await this.#holder.query("rollback");
    // Only tables whose files have a size are truncated: a table whose rows were deleted keeps their space, which would change the order
    // of new rows.
    const { rows } = await this.#client.query(
      "select name from unnest($1::text[]) as name where pg_relation_size(name::regclass) > 0",
      [this.#tables],
    );
    const used = rows.map(({ name }) => name as string);
    if (used.length > 0) await this.#client.query(`truncate ${used.join(", ")} cascade`);
    await this.#client.query(
      `select ${this.#sequences.map(({ name, start }) => `setval('${name}', ${start}, false)`).join(", ")}`,
    );
    this.#promoted = 0;
    await this.#setTimeline(timeline);
    await this.#restoreSingles();
    await this.#holder.query("begin isolation level repeatable read");
    await this.#holder.query("select");
  }

  /** Restores the single-row tables. Whole rows are replaced, so that columns that later migrations add are reset too. */
  async #restoreSingles(): Promise<void> {
    await this.#client.query("begin");
    await this.#client.query("set local session_replication_role = replica");
    for (const name of singles) {
      await this.#client.query(`delete from ${this.schema}.${name}`);
      await this.#client.query(
        `insert into ${this.schema}.${name} select (jsonb_populate_record(null::${this.schema}.${name}, $1)).*`,
        [this.#singles.get(name)],
      );
    }
    await this.#client.query(
      `update ${this.schema}.cluster set id = '${fixedCluster}', timeline = ${this.schema}.log_timeline()`,
    );
    await this.#client.query("commit");
    await this.#client.query(`vacuum ${singles.map((name) => `${this.schema}.${name}`).join(", ")}`);
  }

  /** Copies the present state to the simulated standby, as if it had replayed all commits until now and none after. */
  async keep(): Promise<void> {
    const tables = this.#copied;
    await this.#client.query(`truncate ${tables.map(({ copy }) => copy).join(", ")}`);
    for (const { name, copy } of tables) await this.#client.query(`insert into ${copy} select * from ${name}`);
    this.#kept = await this.query(
      `${this.#sequences.map(({ name }) => `select '${name}' as name, (last_value + case when is_called then 0 else -1 end)::float8 as value from ${name}`).join(" union all ")}`,
    );
  }

  /**
   * Promotes the outdated standby.
   * @param numbersAhead by how many values its sequences are ahead of its rows, because PostgreSQL logs up to 32 values in advance
   */
  async goBack(numbersAhead: number): Promise<void> {
    await this.#client.query("begin");
    // Disables triggers, and with them foreign keys and the schema's guards against writes.
    await this.#client.query("set local session_replication_role = replica");
    const tables = this.#copied;
    await this.#client.query(`truncate ${tables.map(({ name }) => name).join(", ")}`);
    for (const { name, copy, columns } of tables)
      await this.#client.query(
        `insert into ${name} (${columns}) overriding system value select ${columns} from ${copy}`,
      );
    for (const { name, value } of this.#kept)
      if (value > 0) await this.#client.query("select setval($1, $2)", [name, value + numbersAhead]);
    await this.#client.query("commit");
    this.#promoted++;
    await this.#setTimeline(this.#timeline.startsWith("start") ? "start" : "log");
  }

  get #copies(): string {
    return `${this.schema}_standby`;
  }

  async #makeCopies(): Promise<void> {
    await this.#client.query(`drop schema if exists ${this.#copies} cascade; create schema ${this.#copies}`);
    for (const name of [...this.#tables, ...singles.map((single) => `${this.schema}.${single}`)]) {
      const copy = name.replace(this.schema, this.#copies);
      await this.#client.query(`create table ${copy} as table ${name} with no data`);
      const [row] = await this.query<{ columns: string }>(
        `select string_agg(quote_ident(attname), ', ' order by attnum) as columns from pg_attribute
         where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
        [name],
      );
      this.#copied.push({ name, copy, columns: row?.columns ?? "" });
    }
  }

  /**
   * Sets the timeline's name. If `by` is "start", the name is a start time that decreases with each promotion, since a standby may have
   * started before its primary.
   */
  async #setTimeline(by: Plan["timeline"]): Promise<void> {
    const timeline = by === "log" ? String(1 + this.#promoted).padStart(8, "0") : `start ${1_000_000 - this.#promoted}`;
    if (timeline === this.#timeline) return;
    this.#timeline = timeline;
    await this.#client.query(
      `create or replace function ${this.schema}.log_timeline() returns text language sql volatile as $f$ select '${timeline}'::text $f$`,
    );
  }

  async query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.#client.query({ text, values })).rows as Row[];
  }

  async close(): Promise<void> {
    await this.#holder.query("rollback");
    await this.#client.query(`drop schema if exists ${this.schema}, ${this.#copies} cascade`);
    await Promise.all([this.#client.end(), this.#holder.end()]);
  }

  /** Drops partitions too far from `epochMs` (`openPostgres` creates partitions for the real present), and records the other tables. */
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
    const kept = new Set(["migration", ...singles]);
    for (const name of singles) {
      const [single] = await this.query<{ row: unknown }>(`select to_jsonb(t) as row from ${schema}.${name} t`);
      this.#singles.set(name, single?.row);
    }
    this.#tables = tables
      .filter(({ name, kind }) => kind === "r" && near(name) && !kept.has(name))
      .map(({ name }) => `${schema}.${name}`);
    this.#sequences = await this.query(
      "select format('%I.%I', schemaname, sequencename) as name, start_value::float8 as start from pg_sequences where schemaname = $1",
      [schema],
    );
  }
}
