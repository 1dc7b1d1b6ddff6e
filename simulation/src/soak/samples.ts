/** Periodic samples: the resources of the processes, the content of the store, and the lateness of starts. */
import pg from "pg";
import type { Member } from "./crew.ts";
import { percentile } from "./slope.ts";
import type { StartLog } from "./start-log.ts";

export interface Sample {
  readonly atMs: number;
  readonly name: string;
  readonly value: number;
}

const mib = 2 ** 20;
/** Starts that are later than this (ms) are left out of the samples of lateness, because a fault has delayed them. */
const countedMs = 60_000;

const asked = {
  // Sizes and row counts of partitions are added to those of their table.
  tables: `select coalesce(p.relname, c.relname) as name, sum(pg_total_relation_size(c.oid))::float8 as bytes,
             sum(coalesce(s.n_live_tup, 0))::float8 as rows, sum(coalesce(s.n_dead_tup, 0))::float8 as dead
           from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_inherits i on i.inhrelid = c.oid
           left join pg_class p on p.oid = i.inhparent left join pg_stat_all_tables s on s.relid = c.oid
           where n.nspname = $1 and c.relkind = 'r' group by 1 order by 1`,
  connections:
    "select count(*)::float8 as count from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  // A claimed run counts as overdue only 5 s later than other runs, because handlers take up to 3 s.
  live: `select count(*)::float8 as runs,
           count(*) filter (where due_ms < $1 and (state <> 3 or due_ms < $1 - 5000))::float8 as overdue from S.run`,
};

export class Sampler {
  readonly samples: Sample[] = [];
  readonly #url: string;
  readonly #schema: string;

  constructor(url: string, schema: string) {
    this.#url = url;
    this.#schema = schema;
  }

  add(atMs: number, name: string, value: number): void {
    this.samples.push({ atMs, name, value });
  }

  /** @param steady names of the processes to sample: those that are never restarted, since a trend needs one process */
  async lookAtProcesses(members: readonly Member[], steady: ReadonlySet<string>): Promise<void> {
    for (const member of members) {
      if (!steady.has(member.name)) continue;
      const held = await member.held();
      if (!held) continue;
      const atMs = Date.now();
      this.add(atMs, `${member.name} rss MB`, held.rssBytes / mib);
      this.add(atMs, `${member.name} heap MB`, held.heapBytes / mib);
      this.add(atMs, `${member.name} external MB`, held.externalBytes / mib);
      this.add(atMs, `${member.name} handles`, held.handles);
      this.add(atMs, `${member.name} files`, held.files);
    }
  }

  /** Samples the store; adds nothing while the store is unreachable. */
  async lookAtStore(): Promise<void> {
    const client = new pg.Client({ connectionString: this.#url, connectionTimeoutMillis: 2_000 });
    // Without a listener, an error of the connection would end the process. If the store stops during the queries, they reject, and
    // nothing is added.
    client.on("error", () => undefined);
    try {
      await client.connect();
      const tables = await client.query(asked.tables, [this.#schema]);
      const connections = await client.query(asked.connections);
      const live = await client.query(asked.live.replaceAll("S.", `"${this.#schema}".`), [Date.now() - 1_000]);
      const atMs = Date.now();
      for (const { name, bytes, rows, dead } of tables.rows) {
        this.add(atMs, `${name} MB`, bytes / mib);
        this.add(atMs, `${name} rows`, rows);
        this.add(atMs, `${name} dead rows`, dead);
      }
      this.add(atMs, "connections", connections.rows[0].count);
      this.add(atMs, "live runs", live.rows[0].runs);
      this.add(atMs, "overdue runs", live.rows[0].overdue);
    } catch (error) {
      if (!isAway(error)) throw error;
    } finally {
      await client.end().catch(() => undefined); // the connection has ended already
    }
  }

  /** Samples the 50th and 99th percentile of the lateness of first attempts that started since the last call. */
  lookAtLateness(log: StartLog): void {
    const late = log.takeLateness().filter((ms) => ms < countedMs);
    if (late.length === 0) return;
    const sorted = late.toSorted((a, b) => a - b);
    this.add(Date.now(), "lateness p50 ms", percentile(sorted, 0.5));
    this.add(Date.now(), "lateness p99 ms", percentile(sorted, 0.99));
  }

  series(): Map<string, Sample[]> {
    const series = new Map<string, Sample[]>();
    for (const sample of this.samples) {
      const own = series.get(sample.name);
      if (own) own.push(sample);
      else series.set(sample.name, [sample]);
    }
    return series;
  }
}

/** True for errors that occur while the database server is down, starts or stops. */
export function isAway(error: unknown): boolean {
  const { code = "", message = "" } = error as { code?: string; message?: string };
  return (
    /^(?:ECONNREFUSED|ECONNRESET|EPIPE|57P0[123]|08\w{3})$/.test(code) ||
    /terminated|timeout|ended|closed/i.test(message)
  );
}
