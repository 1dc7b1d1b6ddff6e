import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import { openPostgres, type PostgresOptions } from "../../src/store/postgres/postgres.ts";
import { grantWork } from "../../src/store/postgres/roles.ts";
import { inspectPostgres, inspectSchema } from "../../src/store/postgres/runs/inspect.ts";
import type { Store } from "../../src/store/store.ts";
import { everyPostgres } from "../support/servers.ts";
import { complaints, dayMs, numbers, recordingLog, until } from "../support/store-stage.ts";

describe.each(everyPostgres())("separate owner and working roles of the schema, on $title", (server) => {
  const sql = new pg.Pool({ connectionString: server.url, types: numbers });
  const stores: Store[] = [];
  let schema: string;
  let owner: string;
  let worker: string;
  // Connects without a pooler, which would refuse `options` and connects as one role for all clients.
  const as = (role: string) => `${server.direct}?options=${encodeURIComponent(`-c role=${role}`)}`;
  async function open(role: string, options: Partial<PostgresOptions> = {}): Promise<Store> {
    const store = await openPostgres({ url: as(role), schema, failFast: true, connectionsMax: 2, ...options });
    stores.push(store);
    return store;
  }
  const dayName = (table: string, ms: number) =>
    `${table}_${new Date(ms).toISOString().slice(0, 10).replaceAll("-", "")}`;
  const dropDays = async (from: number, nowMs: number) => {
    const { rows } = await sql.query(
      "select relname as name from pg_class where relnamespace = $1::regnamespace and relispartition and relkind = 'r'",
      [schema],
    );
    const late = rows.filter(({ name }) => name.slice(-8) >= dayName("", nowMs + from * dayMs).slice(-8));
    for (const { name } of late) await sql.query(`drop table ${schema}.${name}`);
  };

  beforeEach(async () => {
    schema = `roles_${randomBytes(5).toString("hex")}`;
    [owner, worker] = [`${schema}_owner`, `${schema}_worker`];
    await sql.query(`create role ${owner}; create role ${worker}; create schema ${schema} authorization ${owner}`);
  });
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.close()));
    await sql.query(`drop schema if exists ${schema} cascade`);
    for (const role of [owner, worker]) await sql.query(`drop owned by ${role} cascade`);
    await sql.query(`drop role ${owner}; drop role ${worker}`);
  });
  afterAll(() => sql.end());

  it("the working role does all the work of a node, and cannot change the schema", async () => {
    await expect(open(worker)).rejects.toMatchObject({ code: "STORE_REFUSED" });
    await open(owner);
    await grantWork(as(owner), schema, worker);
    await grantWork(as(owner), schema, worker);
    const { log, lines } = recordingLog();
    const tower = carillon({ store: as(worker), schema, handleSignals: false, log });
    let ticks = 0;
    tower.task("tick", { schedule: every("100ms") }, (run) => {
      run.log.info("it ticks");
      ticks++;
    });
    tower.task("echo", {}, (_, payload) => payload);
    try {
      await tower.start();
      const { runId } = await tower.enqueue("echo", "hello");
      const lock = await tower.lock("one").acquire();
      await lock.release();
      await tower.pause("echo");
      await tower.resume("echo");
      const { store } = await tower.open();
      await until("it ran, by the book", async () => {
        const run = await store.runs.find(runId);
        return run.state === "succeeded" && ticks > 5;
      });
      // The leader does this every hour.
      await store.history.rotate((await store.clock()).ms, 30 * dayMs);
    } finally {
      await tower.stop();
    }
    expect(complaints(lines)).toEqual([]);
    const client = new pg.Client(as(worker));
    await client.connect();
    for (const text of [`create table ${schema}.mine (a int)`, `drop table ${schema}.run`, `truncate ${schema}.run`])
      await expect(client.query(text)).rejects.toMatchObject({ code: "42501" });
    await client.end();
  });

  it("doctor finds the missing rights of the working role, including those on sequences", async () => {
    await open(owner);
    await grantWork(as(owner), schema, worker);
    const lacking = async (role: string) => (await inspectPostgres(as(role), schema)).cluster?.rightsLacking;
    expect([await lacking(owner), await lacking(worker)]).toEqual([[], []]);
    await sql.query(`revoke all on all sequences in schema ${schema} from ${worker}`);
    await sql.query(`revoke delete on ${schema}.run from ${worker}; create table ${schema}.orders (id serial)`);
    await sql.query(`revoke insert on ${schema}.signal, ${schema}.awaited from ${worker}`);
    expect(await lacking(worker)).toEqual(expect.arrayContaining(["awaited", "fence", "run", "run_id", "signal"]));
    // Without this right a recovery could not raise the numbers of runs.
    await sql.query(`grant usage, select on all sequences in schema ${schema} to ${worker}`);
    expect(await lacking(worker)).toEqual(expect.arrayContaining(["fence", "run_id", "session_id_seq"]));
    expect(await lacking(worker)).not.toContain("orders");
  });

  it("later tables and partitions of the owner are accessible to the working role", async () => {
    const store = await open(owner);
    await grantWork(as(owner), schema, worker);
    const { ms: nowMs } = await store.clock();
    const { created } = await store.history.rotate(nowMs, null, 30);
    expect(created).toContain(dayName("run_history", nowMs + 30 * dayMs));
    const client = new pg.Client(as(worker));
    await client.connect();
    expect((await client.query(`select from ${schema}.${dayName("slot", nowMs + 30 * dayMs)}`)).rows).toEqual([]);
    await client.end();
  });

  it("the working role warns on start if few days are left, and is refused without today's; the owner adds them", async () => {
    const own = await open(owner);
    await grantWork(as(owner), schema, worker);
    const { ms: nowMs } = await own.clock();
    const warned = async () => {
      const { log, lines } = recordingLog();
      await open(worker, { log });
      return complaints(lines);
    };
    expect(await warned()).toEqual([]);
    await dropDays(3, nowMs);
    expect(await warned()).toEqual([
      {
        level: "warn",
        message: expect.stringMatching(
          /partitions for history are missing \(slot_\d+ and 39 more\), and role .*_worker may/,
        ),
        fields: { code: "STORE_PARTITIONS", daysLeft: 3, hint: expect.stringContaining(`as ${owner}, daily`) },
      },
    ]);
    const { cluster } = await inspectPostgres(as(worker), schema);
    expect(cluster?.maker).toEqual({ role: worker, owner, may: false });
    expect((await inspectPostgres(as(owner), schema)).cluster?.maker.may).toBe(true);
    expect((await inspectSchema(as(worker), schema)).missing).toEqual({ all: 40, today: 0, mayMake: false });
    await dropDays(0, nowMs);
    expect((await inspectSchema(as(worker), schema)).missing).toEqual({ all: 64, today: 8, mayMake: false });
    expect((await inspectSchema(as(owner), schema, 8)).missing).toEqual({ all: 72, today: 8, mayMake: true });
    await expect(open(worker, { failFast: false })).rejects.toMatchObject({
      code: "STORE_PARTITIONS",
      hint: expect.stringContaining("carillon migrate"),
    });
    await own.history.rotate(nowMs, null);
    expect(await warned()).toEqual([]);
  });

  it("old partitions stay until the owner drops them, with a warning when that is overdue", async () => {
    const own = await open(owner);
    await grantWork(as(owner), schema, worker);
    const { log, lines } = recordingLog();
    const store = await open(worker, { log });
    const { ms: nowMs } = await own.clock();
    await own.history.rotate(nowMs - 40 * dayMs, null);
    const old = dayName("run_history", nowMs - 40 * dayMs);
    expect((await store.history.rotate(nowMs, 30 * dayMs)).dropped).toEqual([]);
    expect(lines.map(({ message }) => message)).toEqual([
      "history past its retention is kept: this role may not drop it",
    ]);
    expect((await own.history.rotate(nowMs, 30 * dayMs)).dropped).toContain(old);
  });

  it("an older schema is refused with a code, naming the role that can migrate it", async () => {
    await open(owner);
    await grantWork(as(owner), schema, worker);
    await sql.query(`delete from ${schema}.migration where number > 27`);
    await expect(open(worker)).rejects.toMatchObject({
      code: "STORE_OLDER",
      hint: expect.stringContaining(`as ${owner}, who owns the tables`),
    });
  });

  it("rights are granted by the owner only, and to an existing role only", async () => {
    await open(owner);
    await expect(grantWork(as(owner), schema, "nobody_at_all")).rejects.toMatchObject({
      code: "STORE_REFUSED",
      hint: expect.stringContaining("CREATE ROLE"),
    });
    await grantWork(as(owner), schema, worker);
    await expect(grantWork(as(worker), schema, worker)).rejects.toMatchObject({
      code: "STORE_REFUSED",
      hint: expect.stringContaining(owner),
    });
  });
});
