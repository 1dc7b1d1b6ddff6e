import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { carillon } from "../../src/library/carillon.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

it("a backlog of runs that take long is claimed and given back once, not over and over until one ends", async () => {
  const { url } = postgres();
  const schema = `slow_${randomBytes(4).toString("hex")}`;
  const sql = new pg.Client({ connectionString: url });
  await sql.connect();
  const count = async (text: string) => Number((await sql.query(text)).rows[0].n);
  const claims = () => count(`select last_value as n from ${schema}.fence`);
  const claimed = () => count(`select count(*) as n from ${schema}.run where state = 3`);
  const tower = carillon({ store: url, schema, handleSignals: false, log: silentLog, concurrency: 2, drain: "5s" });
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const slow = tower.task("slow", {}, () => ended);
  try {
    await tower.open();
    await Promise.all(Array.from({ length: 1_000 }, () => slow.enqueue(null)));
    await tower.start();
    await until("more to be claimed than can run", async () => (await claimed()) > 500);
    await until("what cannot run to be given back", async () => (await claimed()) < 50);
    const before = await claims();
    // As long as it takes to give back once more.
    await new Promise((resolve) => setTimeout(resolve, 1_600));
    expect((await claims()) - before).toBeLessThan(50);
  } finally {
    end();
    await tower.stop();
    await sql.query(`drop schema if exists ${schema} cascade`);
    await sql.end();
  }
});

it("what waits behind runs that take long goes to a worker that has a place", async () => {
  const { url } = postgres();
  const schema = `slow_${randomBytes(4).toString("hex")}`;
  const sql = new pg.Client({ connectionString: url });
  await sql.connect();
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const begun: string[] = [];
  const towers = ["full", "free"].map((name) => {
    const tower = carillon({
      store: url,
      schema,
      name,
      handleSignals: false,
      log: silentLog,
      concurrency: 2,
      drain: "5s",
    });
    const slow = tower.task("slow", {}, () => {
      begun.push(name);
      return ended;
    });
    return { tower, slow };
  });
  const [full, free] = towers as [(typeof towers)[0], (typeof towers)[0]];
  try {
    await full.tower.start();
    await Promise.all(Array.from({ length: 4 }, () => full.slow.enqueue(null)));
    const claimed = async () => (await sql.query(`select from ${schema}.run where state = 3`)).rowCount === 4;
    await until("the first to have claimed all", claimed);
    await free.tower.start();
    await until("the other to run what the first cannot", () => begun.length === 4);
    expect(begun.sort()).toEqual(["free", "free", "full", "full"]);
    // Four claims of the first and two of the other: what the first gave back it left alone.
    expect((await sql.query(`select last_value::int as n from ${schema}.fence`)).rows).toEqual([{ n: 6 }]);
  } finally {
    end();
    await Promise.all(towers.map(({ tower }) => tower.stop()));
    await sql.query(`drop schema if exists ${schema} cascade`);
    await sql.end();
  }
});

it("a run that a full worker has claimed ahead begins where a place is free, before one that is due 3 s later", async () => {
  const { url } = postgres();
  const schema = `slow_${randomBytes(4).toString("hex")}`;
  const sql = new pg.Client({ connectionString: url });
  await sql.connect();
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const begun: string[] = [];
  const towers = ["full", "free"].map((name) => {
    const groups = name === "free" ? ["default", "free"] : ["default"];
    const tower = carillon({ store: url, schema, name, groups, handleSignals: false, log: silentLog, concurrency: 2 });
    const begins = (title: string) => () => {
      begun.push(`${title} on ${name}`);
      return ended;
    };
    return {
      tower,
      slow: tower.task("slow", {}, begins("slow")),
      ahead: tower.task("ahead", {}, begins("ahead")),
      later: tower.task("later", { group: "free" }, begins("later")),
    };
  });
  const [full, free] = towers as [(typeof towers)[0], (typeof towers)[0]];
  try {
    await full.tower.start();
    await Promise.all([full.slow.enqueue(null), full.slow.enqueue(null)]);
    await until("the first to be full", () => begun.length === 2);
    await free.tower.start();
    // Made as a claim of the process that enqueues it, as this has room for one that comes: it cannot know how long its handlers take.
    const { runId } = await full.ahead.enqueue(null, { in: "900ms" });
    const holder = `select s.node from ${schema}.run r join ${schema}.session s on s.id = r.session_id where r.id = $1`;
    expect((await sql.query(holder, [runId])).rows).toEqual([{ node: "full" }]);
    await free.later.enqueue(null, { in: "3900ms" });
    await until("both to begin", () => begun.length === 4);
    expect(begun).toEqual(["slow on full", "slow on full", "ahead on free", "later on free"]);
  } finally {
    end();
    await Promise.all(towers.map(({ tower }) => tower.stop()));
    await sql.query(`drop schema if exists ${schema} cascade`);
    await sql.end();
  }
});
