import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Pgbouncer } from "../support/pgbouncer.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, until } from "../support/store-stage.ts";

/** A wait in ms that is longer than several polls for signals. */
const polledMs = 1_000;

describe.each(everyPostgres())("signals polled through PgBouncer, $title", (server) => {
  let pooler: Pgbouncer;
  let stage: Stage;
  let pool: pg.Pool;
  let heard: string[] = [];
  beforeAll(async () => {
    pooler = await Pgbouncer.before(server.direct, { mode: "transaction" });
    stage = await openStage({ ...server, url: pooler.url });
    pool = new pg.Pool({ connectionString: server.direct, max: 4 });
  });
  afterAll(async () => {
    await pool?.end();
    await stage?.close();
    await pooler?.kill();
  });
  /** Restores the state in which no listener has subscribed to signals yet. */
  beforeEach(async () => {
    heard = [];
    await pool.query(`truncate ${stage.schema}.signal, ${stage.schema}.signal_poll`);
    await pool.query(`select setval('${stage.schema}.signals_until', 1)`);
  });

  async function listening<Result>(work: () => Promise<Result>): Promise<Result> {
    const end = new AbortController();
    const listener = await stage.another();
    const listened = listener.signals.listen((signal) => {
      heard.push(signal.kind === "lock" ? signal.token : signal.kind);
    }, end.signal);
    try {
      await until("it to listen", () => heard.includes("resync"));
      return await work();
    } finally {
      end.abort();
      await listened;
    }
  }
  const resyncs = () => heard.filter((kind) => kind === "resync").length;
  const tell = (client: pg.PoolClient, token: string) =>
    client.query(`select ${stage.schema}.tell('lock ' || $1)`, [token]);

  it.each(["read committed", "repeatable read", "serializable"])(
    "arrive from a %s transaction with a snapshot older than the first request for them",
    async (isolation) => {
      const client = await pool.connect();
      try {
        await client.query(`begin isolation level ${isolation}`);
        await client.query(`select count(*) from ${stage.schema}.run`);
        await listening(async () => {
          await tell(client, "old-snapshot");
          await client.query("commit");
          await until("it to be heard", () => heard.includes("old-snapshot"));
        });
      } finally {
        client.release();
      }
    },
  );

  it("a transaction that signalled before the first poll and commits later makes listeners resync", async () => {
    const client = await pool.connect();
    try {
      await client.query("begin");
      // Gives the transaction an id, which it has in practice because a process that signals has changed something.
      await client.query("select pg_current_xact_id()");
      await tell(client, "unheard");
      await listening(async () => {
        await new Promise((resolve) => setTimeout(resolve, polledMs));
        const before = resyncs();
        await client.query("commit");
        await until("listeners to look", () => resyncs() > before);
        // Transactions of other clients were also open when the first listener subscribed. When each of them ends, listeners read
        // everything once more.
        let after: number;
        await until("listeners to look no more", async () => {
          after = resyncs();
          await new Promise((resolve) => setTimeout(resolve, polledMs));
          return resyncs() === after;
        });
      });
      expect(heard).not.toContain("unheard");
    } finally {
      client.release();
    }
  });

  it("are requested again if the store's clock was set back", async () => {
    await listening(async () => {
      const far = "clock_timestamp() + interval '2 h'";
      await pool.query(`update ${stage.schema}.signal_poll set until = ${far}`);
      await pool.query(`select setval('${stage.schema}.signals_until', (extract(epoch from ${far}) * 1000)::bigint)`);
      await until("they are asked for anew", async () => {
        const { rows } = await pool.query(
          `select extract(epoch from until - clock_timestamp())::float8 as left from ${stage.schema}.signal_poll`,
        );
        return rows[0].left <= 30;
      });
      await pool.query(`select ${stage.schema}.tell('lock after')`);
      await until("it to be heard", () => heard.includes("after"));
    });
  });

  it("are not stored if they have not been requested for a while", async () => {
    await listening(() => Promise.resolve());
    await pool.query(`update ${stage.schema}.signal_poll set until = clock_timestamp() - interval '1 s'`);
    await pool.query(`select setval('${stage.schema}.signals_until', 1)`);
    await pool.query(`truncate ${stage.schema}.signal`);
    await pool.query(`select ${stage.schema}.tell('lock nobody')`);
    const { rows } = await pool.query(`select from ${stage.schema}.signal`);
    expect(rows).toEqual([]);
  });
});
