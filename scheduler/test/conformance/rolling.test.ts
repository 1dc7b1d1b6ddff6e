import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, expect, it } from "vitest";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import { migrations } from "../../src/store/postgres/migrations/index.ts";
import { runState } from "../../src/store/postgres/states.ts";
import { postgres } from "../support/servers.ts";
import { numbers, recordingLog, until } from "../support/store-stage.ts";

const schema = `rolling_${randomBytes(5).toString("hex")}`;
const sql = new pg.Pool({ connectionString: postgres().url, types: numbers, max: 2 });
const patienceMs = 60_000;
const towers: Carillon[] = [];
const began: { slotMs: number; attempt: number }[] = [];
const start = async (): Promise<Carillon> => {
  const { log } = recordingLog();
  const tower = carillon({ store: postgres().url, schema, handleSignals: false, log });
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

it("nodes restarted one after the other on a newer schema: every slot runs once, none is attempted twice", async () => {
  let [one, two] = [await start(), await start()];
  await until("slots fire", () => began.length > 5, patienceMs);
  // Simulates a migration of a later version whose schema this code may still use.
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
    await until("slots fire on", () => began.length > before + 5, patienceMs);
  }
  const slotsBegun = () => began.map(({ slotMs }) => slotMs).sort((a, b) => a - b);
  const each = (slots: number[]) => slots.map((_, n) => (slots[0] ?? 0) + n * 100);
  await until(
    "every slot before the last one has begun",
    () => `${slotsBegun()}` === `${each(slotsBegun())}`,
    patienceMs,
  );
  const certainMs = slotsBegun().at(-1) ?? 0;
  await Promise.all([one.stop(), two.stop()]);
  // Both nodes stop at the same time. A run that one of them gives back waits for the next node, although the other node may still start a
  // later run.
  const { rows: left } = await sql.query(`select slot_ms, state from ${schema}.run`);
  expect(new Set(left.map(({ state }) => state)), "given back, and claimed by none").toEqual(new Set([runState.ready]));
  const waiting = left.map(({ slot_ms }) => slot_ms as number);
  expect(Math.min(...waiting), "what had begun before the end stays begun").toBeGreaterThan(certainMs);
  const slots = [...slotsBegun(), ...waiting].sort((a, b) => a - b);
  expect(slots, "each once, none left out").toEqual(each(slots));
  expect(new Set(began.map(({ attempt }) => attempt))).toEqual(new Set([1]));
  const { rows } = await sql.query(`select count(*) as missed from ${schema}.slot_range`);
  expect(rows).toEqual([{ missed: 0 }]);
});
