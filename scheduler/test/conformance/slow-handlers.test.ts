import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import type { CarillonOptions } from "../../src/settings/settings.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

interface Stage {
  sql: pg.Client;
  schema: string;
  /** Resolves when the test is over; handlers wait for this promise. */
  ended: Promise<void>;
  /** Starts a process with two slots, which is stopped when the test is over. */
  tower(options?: CarillonOptions): Carillon;
}

async function staged(test: (stage: Stage) => Promise<void>): Promise<void> {
  const { url } = postgres();
  const schema = `slow_${randomBytes(4).toString("hex")}`;
  const sql = new pg.Client({ connectionString: url });
  await sql.connect();
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const towers: Carillon[] = [];
  const tower = (options?: CarillonOptions) => {
    const one = carillon({ store: url, schema, handleSignals: false, log: silentLog, concurrency: 2, ...options });
    towers.push(one);
    return one;
  };
  try {
    await test({ sql, schema, ended, tower });
  } finally {
    end();
    await Promise.all(towers.map((one) => one.stop()));
    await sql.query(`drop schema if exists ${schema} cascade`);
    await sql.end();
  }
}

it("a backlog of long runs is claimed and released once, not repeatedly until one of them ends", () =>
  staged(async ({ sql, schema, ended, tower: make }) => {
    const count = async (text: string) => Number((await sql.query(text)).rows[0].n);
    const claims = () => count(`select last_value as n from ${schema}.fence`);
    const claimed = () => count(`select count(*) as n from ${schema}.run where state = 3`);
    const tower = make({ drain: "5s" });
    const slow = tower.task("slow", {}, () => ended);
    await tower.open();
    await Promise.all(Array.from({ length: 1_000 }, () => slow.enqueue(null)));
    await tower.start();
    await until("more to be claimed than can run", async () => (await claimed()) > 500);
    await until("what cannot run to be given back", async () => (await claimed()) < 50);
    const before = await claims();
    // Waits long enough for the process to give runs back once more.
    await new Promise((resolve) => setTimeout(resolve, 1_600));
    expect((await claims()) - before).toBeLessThan(50);
  }));

it("a run waiting behind long runs goes to a worker with a free slot", () =>
  staged(async ({ sql, schema, ended, tower: make }) => {
    const begun: string[] = [];
    const towers = ["full", "free"].map((name) => {
      const tower = make({ name, drain: "5s" });
      const slow = tower.task("slow", {}, () => {
        begun.push(name);
        return ended;
      });
      return { tower, slow };
    });
    const [full, free] = towers as [(typeof towers)[0], (typeof towers)[0]];
    await full.tower.start();
    await Promise.all(Array.from({ length: 4 }, () => full.slow.enqueue(null)));
    const claimed = async () => (await sql.query(`select from ${schema}.run where state = 3`)).rowCount === 4;
    await until("the first to have claimed all", claimed);
    await free.tower.start();
    await until("the other to run what the first cannot", () => begun.length === 4);
    expect(begun.sort()).toEqual(["free", "free", "full", "full"]);
    // The full worker has claimed four runs and the other two: the full one did not claim again the runs that it gave back.
    expect((await sql.query(`select last_value::int as n from ${schema}.fence`)).rows).toEqual([{ n: 6 }]);
  }));

it("a run claimed ahead by a full worker starts on a free slot, before one due 3 s later", () =>
  staged(async ({ sql, schema, ended, tower: make }) => {
    const begun: string[] = [];
    const towers = ["full", "free"].map((name) => {
      const groups = name === "free" ? ["default", "free"] : ["default"];
      const tower = make({ name, groups });
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
    await full.tower.start();
    await Promise.all([full.slow.enqueue(null), full.slow.enqueue(null)]);
    await until("the first to be full", () => begun.length === 2);
    await free.tower.start();
    // The process "full" claims this run together with its enqueue, because a slot seems to be free by then: the process cannot know how
    // long its handlers take.
    const { runId } = await full.ahead.enqueue(null, { in: "900ms" });
    const holder = `select s.node from ${schema}.run r join ${schema}.session s on s.id = r.session_id where r.id = $1`;
    expect((await sql.query(holder, [runId])).rows).toEqual([{ node: "full" }]);
    await free.later.enqueue(null, { in: "3900ms" });
    await until("both to begin", () => begun.length === 4);
    expect(begun).toEqual(["slow on full", "slow on full", "ahead on free", "later on free"]);
  }));

it("asynchronous handlers that compute take turns with everything else, however many runs are due", () =>
  staged(async ({ tower: make }) => {
    const tower = make();
    /** Turns of the event loop that other work of this process had so far. */
    let turns = 0;
    let stopped = false;
    const count = () => {
      turns++;
      if (!stopped) setImmediate(count);
    };
    const seen: number[] = [];
    const busy = tower.task("busy", {}, async () => {
      seen.push(turns);
      const endMs = performance.now() + 5;
      while (performance.now() < endMs);
    });
    await tower.open();
    await Promise.all(Array.from({ length: 200 }, () => busy.enqueue(null)));
    count();
    try {
      await tower.start();
      await until("all to have begun", () => seen.length === 200);
    } finally {
      stopped = true;
    }
    // They compute for a second in all, and a turn of starts ends after a twentieth of it.
    expect(new Set(seen).size).toBeGreaterThan(10);
  }));
