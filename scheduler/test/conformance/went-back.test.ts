import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkCluster } from "../../src/cli/nodes/checks.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import type { Run } from "../../src/run/handler.ts";
import { every } from "../../src/schedule/schedule.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { goOnAbove, skipNumbers } from "../../src/store/postgres/recovery/restored.ts";
import { inspectPostgres } from "../../src/store/postgres/runs/inspect.ts";
import { withDatabase } from "../../src/store/postgres/with-database.ts";
import type { Store } from "../../src/store/store.ts";
import { edited } from "../../src/task/edits.ts";
import { defineTask } from "../../src/task/task.ts";
import { rounds } from "../support/long.ts";
import { RestorableStore } from "../support/restorable-store.ts";
import { change, numbers, recordingLog, until } from "../support/store-stage.ts";

const tickMs = 200;
const everyMs = 1_000;
/** Slots that were planned before the backup fire in any case, so the horizon is short. */
const horizonMs = 6_000;
const schema = "carillon";

/** Restores a store from a base backup while nodes use it. The nodes must not plan from what they remember of the lost time. */
describe("a store restored under live nodes", () => {
  const { log, lines } = recordingLog();
  const slots: { task: string; slotMs: number; atMs: number }[] = [];
  const nodes: Carillon[] = [];
  let server: RestorableStore;
  let store: Store;
  let sql: pg.Pool;

  beforeAll(async () => {
    server = await RestorableStore.start();
    sql = new pg.Pool({ connectionString: server.url, types: numbers, max: 1 });
    sql.on("error", () => undefined); // without a listener, the end of an idle connection would end the process
    for (const name of ["first", "second"]) {
      const tower = carillon({
        store: server.url,
        name,
        handleSignals: false,
        sessionTimeout: "3s",
        horizon: horizonMs,
        log,
      });
      const note = ({ task, slot }: Run) =>
        void slots.push({ task, slotMs: slot?.getTime() ?? Number.NaN, atMs: Date.now() });
      tower.task("tick", { schedule: every(tickMs), misfire: "all" }, note);
      tower.task("edited", { schedule: every(everyMs), misfire: "all" }, note);
      // This task's group is created at the start, so the first backup does not contain it.
      tower.task("grouped", { schedule: every(everyMs), misfire: "all", group: "late" }, note);
      nodes.push(tower);
    }
    store = await openPostgres({ url: server.url, log });
    await server.backUp();
    await Promise.all(nodes.map((tower) => tower.start()));
  });
  afterAll(async () => {
    await Promise.all(nodes.map((tower) => tower.stop()));
    await store.close();
    await sql.end();
    await server.close();
  });

  const sealed = { keyId: "k", wrapped: Buffer.alloc(8), sealed: Buffer.alloc(8) };
  const week = { zone: "UTC", weekend: [0, 6] };
  const content = (day: string) => ({ ...week, holidays: [day] });
  let edits = 0;
  /**
   * Adds a version to the tasks, calendars and secrets `edited` and `made`, or creates them.
   * @returns the new period of the task `edited`, in ms
   */
  const edit = async () => {
    const by = change(Date.now());
    const n = ++edits;
    const { definition } = await store.tasks.byName("edited");
    await store.tasks.save(edited(definition, { schedule: every(everyMs / 4 + n) }), null, by);
    for (const name of ["edited", "made"]) {
      await store.calendars.set(name, content(new Date(n * 86_400_000).toISOString().slice(0, 10)), by);
      await store.secrets.set(name, () => sealed, null, by);
    }
    await store.tasks.save(defineTask("made", { command: { argv: ["true", String(n)] } }), null, by);
    return everyMs / 4 + n;
  };
  /** Returns all versions in the store, each with its time, which differs for two versions with the same number. */
  const versions = async () => {
    const { rows } = await sql.query(
      `select 'task ' || t.name || ' ' || v.version as version, v.changed_ms as made from ${schema}.task_version v join ${schema}.task t on t.id = v.task_id
       union all select 'calendar ' || c.name || ' ' || v.version, v.changed_ms from ${schema}.calendar_version v join ${schema}.calendar c on c.id = v.calendar_id
       union all select 'secret ' || x.name || ' ' || v.version, v.changed_ms from ${schema}.secret_version v join ${schema}.secret x on x.id = v.secret_id`,
    );
    return rows as { version: string; made: number }[];
  };
  const known = new Map<string, number>();
  const twice: string[] = [];
  const note = async () => {
    for (const { version, made } of await versions()) {
      if ((known.get(version) ?? made) !== made) twice.push(version);
      known.set(version, made);
    }
  };
  const fires = (what: string, task: string, sinceMs: number, stepMs: number) =>
    until(what, () => slots.some((one) => one.task === task && one.slotMs > sinceMs && one.slotMs % stepMs === 0));
  /** Returns, for each slot between the two times, how many ledger rows and ranges contain it. */
  const accounts = async (task: string, stepMs: number, fromMs: number, toMs: number) => {
    const { rows } = await sql.query(
      `select n.at as slot, (select count(*)::int from ${schema}.slot l where l.task_id = t.id and l.slot_ms = n.at)
              + (select count(*)::int from ${schema}.slot_range r where r.task_id = t.id and n.at between r.from_ms and r.to_ms) as times
       from ${schema}.task t, generate_series($2::bigint, $3::bigint, $4::bigint) as n (at) where t.name = $1`,
      [task, Math.ceil(fromMs / stepMs) * stepMs, toMs, stepMs],
    );
    return rows as { slot: number; times: number }[];
  };

  it("`restored` is refused even if the backup has no session; the nodes' definitions are stored and planned again", async () => {
    await fires("slots fire", "tick", 0, tickMs);
    const { taskId } = await store.tasks.byName("tick");
    await server.restore();
    const restoredMs = Date.now();
    await expect(skipNumbers(server.url, schema, change(restoredMs))).rejects.toMatchObject({
      code: "STORE_IN_USE",
      message: expect.stringMatching(/node (first|second) /),
    });
    await fires("slots fire", "tick", restoredMs + horizonMs, tickMs);
    expect((await store.tasks.byName("tick")).taskId).toBeGreaterThan(taskId + 999);
    expect(await store.tasks.versions("tick")).toMatchObject([{ version: 1_001 }]);
    await fires("a task of a group that was made anew fires", "grouped", restoredMs + horizonMs, everyMs);
    slots.length = 0;
  });

  it("no version is repeated, every slot is recorded once, and tasks are planned at once from the stored definitions", async () => {
    await fires("slots fire", "tick", 0, tickMs);
    const firstMs = Math.min(...slots.filter(({ task }) => task === "tick").map(({ slotMs }) => slotMs));
    for (let round = 0; round < rounds(1, 10); round++) {
      await note();
      await server.backUp();
      const lostStepMs = await edit();
      await fires("the edited task fires by its new schedule", "edited", Date.now(), lostStepMs);
      await note();

      await server.restore();
      const restoredMs = Date.now();
      const refused = skipNumbers(server.url, schema, change(restoredMs));
      await expect(refused).rejects.toMatchObject({
        code: "STORE_IN_USE",
        message: expect.stringMatching(/node (first|second) /),
      });
      const { stepMs } = await present();
      await fires("the edited task fires by the schedule that the store has", "edited", restoredMs + horizonMs, stepMs);
      await fires("the others fire", "tick", restoredMs + horizonMs, tickMs);
      const untilMs = Math.max(...slots.filter(({ task }) => task === "edited").map(({ slotMs }) => slotMs));
      const checks = checkCluster((await inspectPostgres(server.url, schema)).cluster as never);
      expect(checks.filter(({ what }) => what === "leader" || what === "unplanned slots")).toMatchObject([
        { verdict: "good", found: expect.stringContaining("leads") },
        { verdict: "good" },
      ]);
      expect((await accounts("edited", stepMs, restoredMs, untilMs)).filter(({ times }) => times !== 1)).toEqual([]);
      await edit();
      await note();
      expect(twice, "versions that were there twice").toEqual([]);
    }
    const lastMs = Math.max(...slots.filter(({ task }) => task === "tick").map(({ slotMs }) => slotMs));
    expect((await accounts("tick", tickMs, firstMs, lastMs)).filter(({ times }) => times !== 1)).toEqual([]);
    expect(lines.filter(({ message }) => message.includes("cannot plan"))).toEqual([]);
  });

  it("a forced `restored` under live nodes is noticed: edited tasks and tasks of lost groups fire", async () => {
    await server.backUp();
    await fires("the edited task fires by its new schedule", "edited", Date.now(), await edit());
    await server.restore();
    const restoredMs = Date.now();
    await withDatabase({ url: server.url, schema }, (database) =>
      database.transaction((client) => goOnAbove(client, schema, schema, change(restoredMs))),
    );
    await fires("the edited task fires by what is stored now", "edited", Date.now() + horizonMs, await edit());
    await fires("the others fire", "tick", restoredMs + horizonMs, tickMs);
    await fires("tasks of a group fire", "grouped", restoredMs + horizonMs, everyMs);
    await note();
    expect(twice, "versions that were there twice").toEqual([]);
  });

  const present = async () => {
    const { definition } = await store.tasks.byName("edited");
    return { stepMs: (definition.schedule as { everyMs: number }).everyMs };
  };
});
