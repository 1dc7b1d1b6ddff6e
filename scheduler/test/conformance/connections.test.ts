import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import { carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { everyPostgres } from "../support/servers.ts";
import { StatementCount } from "../support/statement-count.ts";
import { until } from "../support/store-stage.ts";

it.each(everyPostgres())("no statement is JIT-compiled, whatever the server's own setting: $title", async ({ url }) => {
  const surroundings = { clock: systemClock, random: systemRandom, log: silentLog };
  const database = new Database({ url, schema: "public", connectionsMax: 2, ...surroundings });
  try {
    const said = () => database.query<{ jit: string }>("jit", "show jit");
    expect((await Promise.all([said(), said()])).flat()).toEqual([{ jit: "off" }, { jit: "off" }]);
    expect(await database.transaction(async (client) => (await client.query("show jit")).rows)).toEqual([
      { jit: "off" },
    ]);
  } finally {
    await database.close();
  }
});

it.each(everyPostgres())(
  "a connection is ready after one statement, which makes its settings: $title",
  async ({ direct }) => {
    const count = await StatementCount.before(direct);
    const surroundings = { clock: systemClock, random: systemRandom, log: silentLog };
    const database = new Database({ url: count.url, schema: "public", connectionsMax: 1, ...surroundings });
    try {
      const [set] = await database.query(
        "",
        "select current_setting('jit') as jit, current_setting('default_transaction_isolation') as isolation, current_setting('client_connection_check_interval') as checks",
      );
      expect(set).toEqual({ jit: "off", isolation: "read committed", checks: "1s" });
      expect(count.statements).toBe(2);
    } finally {
      await database.close();
      await count.close();
    }
  },
);

it.each(everyPostgres())("two connections are enough for all work, and no more are opened, $title", async (server) => {
  const schema = `connections_${randomBytes(4).toString("hex")}`;
  const database = new pg.Client({ connectionString: server.direct });
  await database.connect();
  const tower = carillon({ store: server.url, schema, handleSignals: false, connections: 2 });
  try {
    const options = { overlap: { allow: 3 }, retry: { attempts: 3, delay: "10ms" } } as const;
    const limited = tower.task<number>("limited", options, (run) => {
      if (run.attempt === 1) throw new Error("once more");
    });
    tower.task("often", { schedule: every("1s") }, () => undefined);
    await tower.start();
    const runs = await Promise.all(Array.from({ length: 60 }, (_, n) => limited.enqueue(n)));
    const { store } = await tower.open();
    const counts: number[] = [];
    const look = async () => {
      // The text of a connection's last statement has the schema's name. A connection that has sent no statement yet is not counted.
      const { rows } = await database.query(
        "select count(*)::int as count from pg_stat_activity where application_name = 'carillon' and query like $1",
        [`%${schema}%`],
      );
      counts.push(rows[0].count);
      const states = await Promise.all(runs.map(async ({ runId }) => (await store.runs.find(runId)).state));
      return states.every((state) => state === "succeeded");
    };
    await until("all to succeed at their second try", look);
    expect(Math.max(...counts)).toBe(2);
  } finally {
    await tower.stop();
    await database.query(`drop schema if exists ${schema} cascade`);
    await database.end();
  }
});
