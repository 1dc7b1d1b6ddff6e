import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { everyPostgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";

/** Counts how many calls run at the same time, and records the maximum. */
class AtOnce {
  now = 0;
  most = 0;
  done = 0;
  async hold(ms: number): Promise<void> {
    this.most = Math.max(this.most, ++this.now);
    await new Promise((resolve) => setTimeout(resolve, ms));
    this.now--;
    this.done++;
  }
}

describe.each(everyPostgres())("limits on $title at any isolation level of the caller's transaction", ({ url }) => {
  const schema = `isolation_${randomBytes(4).toString("hex")}`;
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  const towers: Carillon[] = [];
  const make = (name: string) => {
    const tower = carillon({ store: url, schema: `${schema}_${name}`, handleSignals: false, log: recordingLog().log });
    towers.push(tower);
    return tower;
  };
  afterEach(() => Promise.all(towers.splice(0).map((tower) => tower.stop())));
  afterAll(async () => {
    for (const name of ["enqueue", "complete", "default"])
      await pool.query(`drop schema if exists ${schema}_${name} cascade`);
    await pool.end();
  });

  it.each(["repeatable read", "serializable"])("hold for enqueues in %s", async (isolation) => {
    const tower = make("enqueue");
    const seen = new AtOnce();
    const task = tower.task(`one-${isolation.slice(0, 1)}`, { overlap: "queue" }, () => seen.hold(60));
    await tower.start();
    const clients = await Promise.all(Array.from({ length: 4 }, () => pool.connect()));
    // Each transaction takes its snapshot before any of them enqueues, so each sees no other run.
    for (const client of clients) {
      await client.query(`begin isolation level ${isolation}`);
      await client.query(`select count(*) from ${schema}_enqueue.run`);
    }
    for (const client of clients) {
      // At level serializable, PostgreSQL may refuse a transaction that it cannot serialise; its caller then repeats the transaction.
      const enqueue = () => task.enqueue(undefined, { tx: client }).then(() => client.query("commit"));
      await enqueue().catch(async (error) => {
        await client.query("rollback");
        expect(error).toMatchObject({ code: "STORE_CONFLICT" });
        await client.query(`begin isolation level ${isolation}`);
        await enqueue();
      });
      client.release();
    }
    await until("all four ran", () => seen.done === 4);
    expect(seen.most).toBe(1);
  });

  it("hold for runs that are completed in repeatable read", async () => {
    const tower = make("complete");
    const seen = new AtOnce();
    const task = tower.task("one", { overlap: "queue" }, async (run) => {
      const client = await pool.connect();
      try {
        await client.query("begin isolation level repeatable read");
        await client.query(`select count(*) from ${schema}_complete.run`);
        await seen.hold(40);
        await run.complete(client);
        await client.query("commit");
      } finally {
        client.release();
      }
    });
    await tower.start();
    await Promise.all(Array.from({ length: 6 }, () => task.enqueue(undefined)));
    await until("all six ran", () => seen.done === 6);
    expect(seen.most).toBe(1);
  });

  it("hold if the role's default isolation is repeatable read", async () => {
    const role = `strict_${randomBytes(4).toString("hex")}`;
    await pool.query(`create role ${role} login superuser password 'strict'`);
    await pool.query(`alter role ${role} set default_transaction_isolation = 'repeatable read'`);
    const theirs = Object.assign(new URL(url), { username: role, password: "strict" }).href;
    const tower = carillon({
      store: theirs,
      schema: `${schema}_default`,
      handleSignals: false,
      log: recordingLog().log,
    });
    const seen = new AtOnce();
    const task = tower.task("one", { overlap: { allow: 2 } }, () => seen.hold(20));
    await tower.start();
    await Promise.all(Array.from({ length: 40 }, () => task.enqueue(undefined)));
    await until("all ran", () => seen.done === 40);
    await tower.stop();
    await pool.query(`drop owned by ${role} cascade; drop role ${role}`);
    expect(seen.most).toBe(2);
  });
});
