import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import { postgres } from "../support/servers.ts";
import { StallMeter } from "../support/stall-meter.ts";
import { until } from "../support/store-stage.ts";
import { hold } from "../support/timing.ts";

const places = 50;
const longRuns = 60;
const longMs = 25_000;
const everyMs = 200;
const lookMs = 8_000;

const schema = `full_worker_${randomBytes(4).toString("hex")}`;
const towers: Carillon[] = [];
afterAll(async () => {
  await Promise.all(towers.map((tower) => tower.stop()));
  const database = new pg.Client({ connectionString: postgres().url });
  await database.connect();
  await database.query(`drop schema if exists ${schema} cascade`);
  await database.end();
});

/** A worker without a free slot hands due runs on (docs/tasks/limits.md), so runs of a serial task must still start in time. */
it("a serial task is on time beside a full worker while another worker has 40 free slots", async () => {
  const starts: { slotMs: number; lateMs: number }[] = [];
  const longAt = new Map<string, number>();
  const opened = async (name: string) => {
    const tower = carillon({
      store: postgres().url,
      schema,
      name,
      concurrency: places,
      drain: "100ms",
      handleSignals: false,
      log: silentLog,
    });
    towers.push(tower);
    tower.task("long", {}, ({ signal }) => {
      longAt.set(name, (longAt.get(name) ?? 0) + 1);
      return sleep(longMs, undefined, { signal });
    });
    tower.task("serial", { schedule: every(everyMs), overlap: "queue", misfire: "all" }, ({ slot }) => {
      const slotMs = slot?.getTime() ?? Number.NaN;
      starts.push({ slotMs, lateMs: Date.now() - slotMs });
    });
    await tower.start();
    return tower;
  };
  const between = (fromMs: number, toMs: number) =>
    starts.flatMap(({ slotMs, lateMs }) => (slotMs >= fromMs && slotMs < toMs ? [lateMs] : []));

  const first = await opened("first");
  await until("slots fire", () => starts.length > 0);
  const stalls = new StallMeter();
  const controlMs = Date.now();
  await sleep(lookMs);
  const filledMs = Date.now();
  await Promise.all(Array.from({ length: longRuns }, () => first.enqueue("long")));
  await until("it is full", () => longAt.get("first") === places);
  await opened("second");
  const besideMs = Date.now();
  await until("the other has the rest", () => longAt.get("second") === longRuns - places);
  await sleep(besideMs + lookMs - Date.now());
  const [before, beside] = [between(controlMs, filledMs), between(besideMs, besideMs + lookMs)];
  expect(Math.min(before.length, beside.length)).toBeGreaterThan(30);
  hold("greatest lateness of a serial task beside a full worker", {
    ms: Math.max(...beside),
    controlMs: Math.max(...before),
    mostMs: 250 + 3 * stalls.stop(),
  });
});
