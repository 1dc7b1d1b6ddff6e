import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, expect, it } from "vitest";
import { type Carillon, carillon } from "../../src/carillon.ts";
import { every } from "../../src/schedule.ts";
import { migrations } from "../../src/store/migrations/index.ts";
import { postgres } from "../support/servers.ts";
import { numbers, recordingLog, until } from "../support/store-stage.ts";

const schema = `rolling_${randomBytes(5).toString("hex")}`;
const sql = new pg.Pool({ connectionString: postgres().url, types: numbers, max: 2 });
const towers: Carillon[] = [];
const began: { slotMs: number; attempt: number }[] = [];
const start = async (): Promise<Carillon> => {
  const { log } = recordingLog();
  const tower = carillon({ store: postgres().url, schema, handleSignals: false, sessionTimeout: 1_500, log });
  tower.task("beat", { schedule: every("100ms"), misfire: "all", retry: { attempts: 3 } }, async (run) => {
    began.push({ slotMs: run.slot?.getTime() ?? 0, attempt: run.attempt });
    await new Promise((resolve) => setTimeout(resolve, 50));
  });
  towers.push(tower);
  return tower.start();
};
afterAll(async () => {
  await Promise.all(towers.map((tower) => tower.stop()));
  await sql.query(`drop schema if exists ${schema} cascade`);
  await sql.end();
});

it("nodes are restarted one after the other, on a schema that is newer by then: every slot once, none tried twice", async () => {
  let [one, two] = [await start(), await start()];
  await until("slots fire", () => began.length > 5);
  // What a migration of tomorrow that serves this code leaves behind.
  const newest = migrations.at(-1)?.number as number;
  const put = `insert into ${schema}.migration (number, name, applied_ms, serves) values ($1, 'of tomorrow', 0, $2)`;
  await sql.query(put, [newest + 1, newest]);
  await sql.query(`alter table ${schema}.run add column of_tomorrow text`);
  for (let round = 0; round < 2; round++) {
    await one.stop();
    one = await start();
    const before = began.length;
    await two.stop();
    two = await start();
    await until("slots fire on", () => began.length > before + 5);
  }
  await Promise.all([one.stop(), two.stop()]);
  const slots = began.map(({ slotMs }) => slotMs).sort((a, b) => a - b);
  const [first = 0] = slots;
  expect(slots, "each once, none left out").toEqual(slots.map((_, n) => first + n * 100));
  expect(new Set(began.map(({ attempt }) => attempt))).toEqual(new Set([1]));
  const { rows } = await sql.query(`select count(*) as missed from ${schema}.slot_range`);
  expect(rows).toEqual([{ missed: 0 }]);
});
