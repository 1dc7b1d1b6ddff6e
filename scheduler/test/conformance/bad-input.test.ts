import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { Carillon } from "../../src/library/carillon.ts";
import { realSurroundings } from "../../src/settings/surroundings.ts";
import type { Store } from "../../src/store/store.ts";
import { type TestTower, testTower } from "../../src/testing/testing.ts";
import { postgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";

/** Tests the table of docs/tasks/handlers.md: misbehaving handlers are limited, recorded and explained. Uses real processes. */
describe("bad input", () => {
  const schema = `bad_input_${randomBytes(4).toString("hex")}`;
  const towers: (TestTower | Carillon)[] = [];
  afterEach(async () => {
    for (const tower of towers.splice(0)) await ("close" in tower ? tower.close() : tower.stop());
  });
  afterAll(() => drop(schema));
  function make(surroundings = realSurroundings): Carillon {
    const { log } = recordingLog();
    const tower = new Carillon({ store: postgres().url, schema, handleSignals: false, log }, surroundings);
    towers.push(tower);
    return tower;
  }

  it("a group without workers: its runs wait, and the leader logs one warning after a minute", async () => {
    const { log, lines } = recordingLog();
    const ran: string[] = [];
    const tower = await testTower({
      store: postgres().url,
      now: "2030-01-01T00:00:00Z",
      groups: ["default"],
      log,
      tasks: (own) => void own.task("far", { group: "nobody" }, () => void ran.push("far")),
    });
    towers.push(tower);
    const { runId } = await tower.carillon.enqueue("far");
    const warned = () => lines.filter(({ level, fields }) => level === "warn" && fields.what === "group nobody");
    await tower.advance("50s");
    expect(warned()).toEqual([]);
    await tower.advance("5m");
    expect(warned(), "once").toHaveLength(1);
    expect(warned()[0]?.message).toMatch(/no live worker can take them; see carillon doctor/);
    expect((await (await tower.carillon.open()).store.runs.find(runId)).state).toBe("ready");
    expect(ran).toEqual([]);
  });

  it("a handler that throws, or returns a value that throws on access: its run ends, and the process continues", async () => {
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error("do not look");
        },
        getPrototypeOf: () => {
          throw new Error("do not ask");
        },
      },
    );
    const tower = make();
    const tasks = {
      returns: tower.task("returns", {}, () => hostile),
      resolves: tower.task("resolves", {}, async () => ({ value: hostile })),
      throws: tower.task("throws", {}, () => {
        throw hostile;
      }),
      rejects: tower.task("rejects", {}, () => Promise.reject(hostile)),
      fine: tower.task("fine", {}, () => "well"),
    };
    await tower.start();
    const { store } = await tower.open();
    const seen: Record<string, unknown> = {};
    for (const [name, task] of Object.entries(tasks)) {
      const { runId } = await task.enqueue(undefined);
      await until(`${name} to end`, async () => (await store.runs.find(runId)).endedMs !== null);
      const { state, error, result } = await store.runs.find(runId);
      seen[name] = [state, (error as { message?: string } | null)?.message ?? result];
    }
    expect(seen).toEqual({
      returns: ["failed", "do not look"],
      resolves: ["succeeded", null],
      throws: ["failed", "an unreadable object"],
      rejects: ["failed", "an unreadable object"],
      fine: ["succeeded", "well"],
    });
  });

  it("a store that turns out unusable after opening is closed, and the next attempt opens another one", async () => {
    const [opened, closed]: [Store[], Store[]] = [[], []];
    const around = async (store: Store) => {
      const { close } = store;
      store.close = async () => {
        closed.push(store);
        await close();
      };
      if (opened.push(store) === 1) throw new Error("not this one");
      return store;
    };
    const tower = make({ ...realSurroundings, around });
    await expect(tower.open()).rejects.toThrow("not this one");
    expect(closed).toEqual(opened);
    await tower.open();
    expect(opened).toHaveLength(2);
    expect(closed).toHaveLength(1);
  });

  it.each([1, -1])(
    "a worker whose clock is %i h off starts each run when it is due by the store's clock",
    async (hours) => {
      const wall = () => Date.now() + hours * 3_600_000;
      const tower = make({ ...realSurroundings, clock: { ...systemClock, wall } });
      let startedAt = Number.NaN;
      const task = tower.task("timed", {}, () => {
        startedAt = Date.now();
      });
      await tower.start();
      const { store } = await tower.open();
      const { runId } = await task.enqueue(undefined, { in: "500ms" });
      await until("its end", async () => (await store.runs.find(runId)).endedMs !== null);
      const { dueMs, startedMs } = await store.runs.find(runId);
      expect(Math.abs(dueMs - Date.now())).toBeLessThan(60_000);
      expect(startedAt).toBeGreaterThanOrEqual(dueMs - 20);
      expect(startedMs).toBeGreaterThanOrEqual(dueMs);
    },
  );
});

async function drop(schema: string): Promise<void> {
  const client = new pg.Client({ connectionString: postgres().url });
  await client.connect();
  await client.query(`drop schema if exists ${schema} cascade`);
  await client.end();
}
