import { afterEach, describe, expect, it } from "vitest";
import { defineTask, every } from "../../src/index.ts";
import { type TestTower, testTower } from "../../src/testing/testing.ts";
import { postgres } from "../support/servers.ts";

const thresholds = { lateMs: 1, overdueMs: 1, unfiredMs: 1, stuckMs: 1, leaderlessMs: 1, summaryMs: 60_000 };

describe("consecutive failures", () => {
  const towers: TestTower[] = [];
  afterEach(async () => {
    for (const tower of towers.splice(0)) await tower.close();
  });

  /** Starts a test instance with a task that runs every minute and whose n-th attempt fails if `fails(n)` returns true. */
  async function open(options: Parameters<typeof defineTask>[1] = {}, fails: (n: number) => boolean = () => true) {
    let runs = 0;
    const tower = await testTower({
      store: postgres().direct,
      now: "2030-01-01T00:00:30Z",
      tasks: (carillon) => {
        carillon.task("failing", { schedule: every("1m"), pauseAfter: 3, ...options }, () => {
          if (fails(++runs)) throw new Error(`run ${runs}`);
        });
      },
    });
    towers.push(tower);
    const { store } = await tower.carillon.open();
    return {
      tower,
      store,
      runs: () => runs,
      paused: async () => (await store.tasks.byName("failing")).paused?.why ?? null,
      alarms: async () => {
        await store.alarms.look(["paused"], thresholds, { paused: ["ops"] }, tower.now().getTime());
        return (await store.alarms.open()).map(({ rule, subject, text }) => `${rule} ${subject}: ${text}`);
      },
    };
  }

  it("pause the task: no further run starts until it is resumed, and then as many failures pause it again", async () => {
    const { tower, store, runs, paused, alarms } = await open();
    await tower.advance("2m");
    expect([runs(), await paused(), await alarms()]).toEqual([2, null, []]);
    await tower.advance("20m");
    expect([runs(), await paused()]).toEqual([3, "3 runs in a row failed"]);
    expect(await alarms()).toEqual([
      "paused failing: 3 runs in a row failed: nothing of it starts until carillon tasks resume failing",
    ]);
    const [entry] = await store.audit.list({ about: "task" }, Number.MAX_SAFE_INTEGER, 1);
    expect(entry).toMatchObject({
      act: "pause",
      named: "failing",
      who: tower.carillon.node,
      why: "3 runs in a row failed",
    });
    await tower.carillon.resume("failing");
    expect(await alarms()).toEqual([]);
    await tower.advance("2m");
    expect([runs(), await paused()]).toEqual([5, null]);
    await tower.advance("10m");
    expect([runs(), await paused()]).toEqual([6, "3 runs in a row failed"]);
  });

  it("are counted from the last success, without attempts, cancelled and skipped runs", async () => {
    const retry = { attempts: 2, delay: "1s", jitter: 0 } as const;
    // Each run has two attempts: the first two runs fail with attempts 1 to 4, and the third run succeeds with attempt 6.
    const { tower, runs, paused } = await open({ retry, overlap: "skip" }, (n) => n % 6 !== 0);
    await tower.advance("10m");
    expect([runs(), await paused()]).toEqual([20, null]);
    const { runId } = await tower.carillon.enqueue("failing", null, { in: "10s" });
    await tower.carillon.cancel(runId);
    // The run of the eleventh minute fails, and the one of the twelfth succeeds.
    await tower.advance("5m");
    expect(await paused()).toBe(null);
  });

  it("can be limited to one", async () => {
    const { tower, runs, paused } = await open({ pauseAfter: 1 });
    await tower.advance("5m");
    expect([runs(), await paused()]).toEqual([1, "a run failed"]);
  });

  it("are found by the next leader if no process was notified of the last failure", async () => {
    const { tower, store, paused } = await open({ pauseAfter: null });
    await tower.advance("5m");
    expect(await paused()).toBe(null);
    await tower.carillon.save(defineTask("failing", { schedule: every("1m"), pauseAfter: 3 }));
    const change = { author: "node", reason: "", nowMs: tower.now().getTime() };
    expect(await store.tasks.pauseFailing([], change)).toEqual([]);
    expect(await store.tasks.pauseFailing(null, { ...change, nowMs: change.nowMs + 2 * 3_600_000 })).toEqual([]);
    expect(await store.tasks.pauseFailing(null, change)).toEqual(["failing"]);
    expect(await store.tasks.pauseFailing(null, change)).toEqual([]);
    expect(await paused()).toBe("3 runs in a row failed");
  });

  it("cannot be counted if rows of successful runs are not kept", () => {
    expect(() => defineTask("unkept", { pauseAfter: 3, history: "failures" })).toThrow(
      expect.objectContaining({ code: "TASK_INVALID", path: "pauseAfter" }),
    );
  });
});
