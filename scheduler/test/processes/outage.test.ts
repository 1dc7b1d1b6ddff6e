import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import { StoreProxy } from "../support/proxy.ts";
import { RedisServer } from "../support/redis-server.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

const periodMs = 250;
/** How long slots come due without being planned, in ms. In this time more slots come due than a catch-up runs. */
const unplannedMs = 2_000;
const soonMs = 60_000;
const log = silentLog;

interface Start {
  task: string;
  slot: number;
  at: number;
}
interface Slot {
  task: string;
  slot: number;
  outcome: number;
  reason: string | null;
  term: number | null;
  accepted: number;
  ends: number;
  /**
   * When the slot's run ended, in ms; if the run was given up, when a worker tried to claim it; null: no run of the slot has ended.
   */
  ended: number | null;
}

describe("an outage of a few seconds", () => {
  const database = new pg.Client({ connectionString: postgres().url });
  const schemas: string[] = [];
  const ending: (() => Promise<unknown>)[] = [];
  beforeAll(() => database.connect());
  afterAll(async () => {
    for (const end of ending.reverse()) await end();
    for (const schema of schemas) await database.query(`drop schema if exists ${schema} cascade`);
    await database.end();
  });

  const schemaFor = (name: string) => {
    const schema = `outage_${name}_${process.pid}`;
    schemas.push(schema);
    return schema;
  };
  const slotsOf = async (schema: string): Promise<Slot[]> => {
    const { rows } = await database.query(
      `select t.name as task, l.slot_ms::float8 as slot, l.outcome, l.reason, l.term::float8, l.accepted_ms::float8 as accepted,
              (select ended_ms::float8 from ${schema}.run_history h where h.id = l.run_id) as ended,
              (select count(*)::int from ${schema}.run_history h where h.id = l.run_id and h.outcome = 0) as ends
       from ${schema}.slot l join ${schema}.task t on t.id = l.task_id`,
    );
    return rows;
  };
  const inOrder = (times: number[]) => [...times].sort((a, b) => a - b);
  const each = (from: number, to: number) =>
    Array.from({ length: (to - from) / periodMs + 1 }, (_, i) => from + i * periodMs);

  test.concurrent("of the store: no run is invented, and every slot ends by its misfire policy", async () => {
    const schema = schemaFor("store");
    const proxy = await StoreProxy.before(postgres().url);
    ending.push(() => proxy.close());
    const [afterMs, cap] = [1_000, 4];
    const starts: Start[] = [];
    const settings = { sessionTimeout: "1500ms", horizon: "3s", drain: 0, handleSignals: false, log };
    const tower = carillon({ store: proxy.url, schema, ...settings });
    ending.push(() => tower.stop());
    const policies = ["fire_once", "skip", "all"] as const;
    for (const policy of policies) {
      const misfire = { policy, after: afterMs, ...(policy === "all" ? { cap } : {}) };
      tower.task(policy, { schedule: every(periodMs), misfire }, async (run) => {
        starts.push({ task: run.task, slot: Number(run.slot), at: Date.now() });
      });
    }
    await tower.start();
    await until("all to run", () => policies.every((policy) => starts.some(({ task }) => task === policy)), soonMs);
    proxy.cut({ refuse: true });
    const downMs = Date.now();
    const planned = Math.max(...(await slotsOf(schema)).map(({ slot }) => slot));
    await until("slots to come due that nobody has planned", () => Date.now() > planned + unplannedMs, soonMs);
    const meanwhile = starts.filter(({ at, slot }) => at > downMs && slot > downMs + 1_000 + periodMs);
    const upMs = Date.now();
    proxy.heal();
    const runsAgain = (policy: string) => starts.some(({ task, slot }) => task === policy && slot > upMs + 2_000);
    await until("all to run again", () => policies.every(runsAgain), soonMs);
    await tower.stop();

    expect(meanwhile, "started although nobody could claim it").toEqual([]);
    const slots = await slotsOf(schema);
    const { rows: ranges } = await database.query(
      `select t.name as task, r.from_ms::float8 as from, r.to_ms::float8 as to, r.outcome, r.reason
       from ${schema}.slot_range r join ${schema}.task t on t.id = r.task_id`,
    );
    for (const policy of policies) {
      const run = slots.filter(({ task, ends }) => task === policy && ends === 1);
      const missed = ranges.filter(({ task }) => task === policy).flatMap(({ from, to }) => each(from, to));
      // These slots were planned before the outage and were too late when workers could claim again.
      const given = slots.filter(({ task, outcome }) => task === policy && outcome === 3);
      expect(new Set(given.map(({ reason }) => reason))).toEqual(
        new Set(policy === "all" ? [] : [`misfire: ${policy}`]),
      );
      const all = inOrder([...[...run, ...given].map(({ slot }) => slot), ...missed]).filter(
        (slot) => slot <= upMs + 1_000,
      );
      expect(all, policy).toEqual(each(all[0] as number, all.at(-1) as number));
      // `accepted` is the time of the statement's first attempt, which may be before the store was back.
      const ofPolicy = slots.filter(({ task }) => task === policy);
      const accepted = ofPolicy.filter((one) => one.accepted > downMs && one.slot <= one.accepted);
      // Only the first catch-up counts, because a planner that the machine delays may have to catch up again.
      const firstMs = Math.min(...accepted.map((one) => one.accepted));
      const caughtUp = accepted.filter((one) => one.accepted === firstMs);
      const late = caughtUp.filter(({ ends }) => ends === 1);
      expect(caughtUp.length, policy).toBeGreaterThan(0);
      const expected = {
        // With `fire_once`, one of the slots runs. If a busy machine delayed all claims beyond the misfire time, a later slot runs in its
        // place.
        fire_once: caughtUp.every(({ outcome, slot, ended }) => outcome === 3 && Number(ended) - slot > afterMs)
          ? 0
          : 1,
        all: Math.min(cap, late.length + missed.length),
        skip: late.filter(({ slot, accepted }) => accepted - slot <= afterMs).length,
      };
      expect(late.length, policy).toBe(expected[policy]);
      expect(missed.length, policy).toBeGreaterThan(0);
    }
    for (const { outcome, reason, task } of ranges)
      expect([outcome, String(reason)]).toEqual([3, expect.stringContaining(task)]);
    const started = starts.map(({ task, slot }) => `${task} ${slot}`);
    expect(new Set(started).size, "none started twice").toBe(started.length);
  });

  test.concurrent("of the coordination service: slots fire once each, and a leader exists again without intervention", async () => {
    const schema = schemaFor("service");
    const server = await RedisServer.start();
    ending.push(() => server.close());
    const starts: Start[] = [];
    const settings = { coordination: server.url, sessionTimeout: "5s", horizon: "10s", handleSignals: false, log };
    const towers: Carillon[] = [];
    for (const name of ["a", "b"]) {
      const tower = carillon({ store: postgres().url, schema, name, ...settings });
      for (let i = 0; i < 5; i++) {
        tower.task(`task-${i}`, { schedule: every(periodMs) }, async (run) => {
          starts.push({ task: run.task, slot: Number(run.slot), at: Date.now() });
        });
      }
      towers.push(tower);
      ending.push(() => tower.stop());
      await tower.start();
    }
    const leads = async () =>
      (await database.query(`select from ${schema}.leadership where session_id is not null`)).rows.length === 1;
    await until("one to lead", leads, soonMs);
    await until("some to run", () => starts.length > 0, soonMs);
    await server.kill();
    const downMs = Date.now();
    await until("nobody to lead", async () => !(await leads()), soonMs);
    // Slots without a term were planned not by the leader but by other nodes.
    const rescues = async () =>
      (await slotsOf(schema)).filter(({ term, slot }) => term === null && slot > downMs && slot < Date.now()).length;
    await until("slots to come due that no leader planned", async () => (await rescues()) >= 20, soonMs);
    await server.up();
    const upMs = Date.now();
    await until("one to lead", leads, soonMs);
    const names = new Set(starts.map(({ task }) => task));
    const goesOn = (name: string) => starts.some(({ task, slot }) => task === name && slot > upMs + 1_000);
    await until("all to go on", () => [...names].every(goesOn), soonMs);
    await Promise.all(towers.map((tower) => tower.stop()));

    const slots = (await slotsOf(schema)).filter(({ slot }) => slot <= upMs + 500);
    for (const task of new Set(slots.map((one) => one.task))) {
      const times = inOrder(slots.flatMap((one) => (one.task === task ? [one.slot] : [])));
      expect(times, task).toEqual(each(times[0] as number, times.at(-1) as number));
    }
    expect(slots.filter(({ outcome, ends }) => outcome !== 1 || ends !== 1)).toEqual([]);
    const started = starts.map(({ task, slot }) => `${task} ${slot}`);
    expect(new Set(started).size, "none started twice").toBe(started.length);
    const rescued = slots.filter(({ term, slot }) => term === null && slot > downMs);
    expect(rescued.length, "every slot had been planned before: the test proved nothing").toBeGreaterThan(0);
  });
});
