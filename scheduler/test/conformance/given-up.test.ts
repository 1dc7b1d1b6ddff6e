import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import type { CarillonError } from "../../src/base/errors.ts";
import { silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import type { Store } from "../../src/store/store.ts";
import { Pgbouncer } from "../support/pgbouncer.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, until } from "../support/store-stage.ts";

const answerMs = 1_500;

/**
 * Tests that the client asks the server to cancel a statement whose reply it no longer waits for. Otherwise the statement would run on at
 * the server, wait for its row lock and block the next statement.
 */
describe.each(everyPostgres())("a statement abandoned by the client ends on the server, $title", (server) => {
  let stage: Stage;
  let pooler: Pgbouncer;
  beforeAll(async () => {
    stage = await openStage(server);
    pooler = await Pgbouncer.before(server.direct, { mode: "transaction" });
  });
  afterAll(async () => {
    await pooler?.kill();
    await stage?.close();
  });

  /** Counts the connections that wait for a lock in this schema. */
  const atWork = async () =>
    (
      await stage.rows<{ query: string }>(
        "select query from pg_stat_activity where state = 'active' and pid <> pg_backend_pid() and wait_event_type = 'Lock' and query like '%' || $1 || '%'",
        [stage.schema],
      )
    ).length;

  it.each(["directly", "through a pooler"])(
    "%s: a heartbeat, and another statement that was silent for as long",
    (way) => pooler.besideCrashes(() => isGivenUp(way)),
  );

  async function isGivenUp(way: string): Promise<void> {
    const store: Store = await openPostgres({
      url: way === "directly" ? server.direct : pooler.url,
      schema: stage.schema,
      connectionsMax: 3,
      answerMs,
    });
    const [session, task] = [await stage.session(), await stage.task(`held ${way}`.replaceAll(" ", "-"))];
    const holder = await stage.sql.connect();
    try {
      await holder.query("begin");
      await holder.query(`select from ${stage.schema}.session where id = ${session} for update`);
      await holder.query(`select from ${stage.schema}.task where id = ${task.taskId} for update`);
      const paused = store.tasks.pause(task.name, { author: "test", reason: "", nowMs: stage.nowMs }).then(
        () => "paused",
        (error) => error,
      );
      await until("the pause to wait", async () => (await atWork()) === 1);
      // A call that gets no connection in time is rejected with another message and has no statement to cancel, so it does not count.
      let givenUp = 0;
      await until("three beats to be given up", async () => {
        const error = await store.sessions.beat(session, stage.nowMs).catch((error: CarillonError) => error);
        expect(error).toMatchObject({ code: "STORE_UNREACHABLE" });
        if ((error as CarillonError).message.includes("timeout expired")) givenUp++;
        return givenUp === 3;
      });
      await until("all to end", async () => (await atWork()) === 0);
      expect(await paused).toMatchObject({ code: "STORE_UNREACHABLE" });
      await holder.query("commit");
      // The first call may get a connection that is just being closed, so the call is repeated.
      const alive = () =>
        store.sessions.beat(session, stage.nowMs).then(
          (pulse) => pulse.alive,
          (error) => error.code,
        );
      await expect.poll(alive, { timeout: 60_000 }).toBe(true);
    } finally {
      await holder.query("rollback");
      holder.release();
      await store.close();
    }
  }

  it("a statement of a vanished process ends too", async () => {
    const database = new Database({
      url: server.direct,
      schema: stage.schema,
      connectionsMax: 1,
      answerMs,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      // This driver sends no cancel requests, like a process that was killed.
      driver: { pool: (config) => new pg.Pool(config), client: (config) => new pg.Client(config) },
    });
    const session = await stage.session();
    const holder = await stage.sql.connect();
    try {
      await holder.query("begin");
      const locked = `select id from ${stage.schema}.session where id = ${session} for update`;
      await holder.query(locked);
      await expect(database.ask("", locked)).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
      // PostgreSQL checks once a second whether the client is still connected.
      await until("the statement to end", async () => (await atWork()) === 0);
    } finally {
      await holder.query("rollback");
      holder.release();
      await database.close();
    }
  });
});
