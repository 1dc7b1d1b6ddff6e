/**
 * Takes some 90 s: for each way of coordination, several rounds of some seconds each, and one round with default settings, in which the
 * detection of the dead worker and its grace period take some 10 s. `npm run prove -- timing` measures how late runs start.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ownPath, sharedServer } from "../../../zookeeper/test/support/servers.ts";
import { seeded } from "../../src/base/random.ts";
import { taskOptions } from "../../src/task/options.ts";
import { groupBy, KillRounds, slotKey } from "../support/kill-rounds.ts";
import type { Seen } from "../support/programs.ts";
import { redis } from "../support/servers.ts";

const ways = [
  { by: "the store alone", rounds: 14, coordination: () => undefined },
  { by: "ZooKeeper", rounds: 6, coordination: () => `zookeeper://${sharedServer()}${ownPath("crash")}` },
  { by: "Redis", rounds: 2, coordination: () => `${redis().url}?prefix=crash-${process.pid}` },
];
const tasks = 60;
const seed = Number(process.env.CARILLON_TEST_SEED ?? Date.now() % 1_000_000);
/**
 * Tolerance in ms when two times are compared: a process's estimate of the store's clock is wrong by up to half a round trip, and the time
 * of a log line (`at`) is read from this machine's clock.
 */
const clockErrorMs = 5;

describe.each(ways)(`two processes coordinated by $by, one killed with -9, $rounds times (seed ${seed})`, (way) => {
  const { rounds } = way;
  let scene: KillRounds;

  beforeAll(async () => {
    const schema = `crash_${rounds}_${process.pid}`;
    scene = new KillRounds(schema, { rounds, tasks, coordination: way.coordination(), random: seeded(seed) });
    await scene.play();
  });
  afterAll(() => scene.close());

  test("no slot is lost: the ledger has every second of every task, and each slot became a run", async () => {
    const { ledger, pausedAt, database, schema } = scene;
    const byTask = groupBy(ledger, ({ task }) => task);
    expect(byTask.size).toBe(tasks);
    for (const [task, slots] of byTask) {
      const times = slots.map(({ slot }) => slot).sort((a, b) => a - b);
      const last = times.at(-1) as number;
      expect(last, task).toBeGreaterThan(pausedAt);
      const expected = Array.from(
        { length: (last - (times[0] as number)) / 1_000 + 1 },
        (_, i) => (times[0] as number) + i * 1_000,
      );
      expect(times, task).toEqual(expected);
    }
    expect(ledger.filter(({ outcome }) => outcome !== 1)).toEqual([]);
    const { rows: ranges } = await database.query(`select * from ${schema}.slot_range`);
    expect(ranges).toEqual([]);
  });

  test("no slot is duplicated: each slot has exactly one accepted end", () => {
    const { ended, ledger } = scene;
    const ends = ended.map(slotKey);
    expect(new Set(ends).size).toBe(ends.length);
    expect(ends.sort()).toEqual(ledger.map(slotKey).sort());
  });

  test("a slot starts twice only if the process that started it first was killed", () => {
    const { starts, killedAt } = scene;
    for (const [key, seen] of starts) {
      const ordered = seen.sort((a, b) => a.attempt - b.attempt);
      expect(new Set(ordered.map(({ fence }) => fence)).size, key).toBe(ordered.length);
      for (let i = 1; i < ordered.length; i++) {
        const [first, second] = [ordered[i - 1] as Seen, ordered[i] as Seen];
        expect(second.fence, key).toBeGreaterThan(first.fence);
        expect(killedAt.get(first.node), `${key} started again by ${second.node} after ${first.node}`).toBeLessThan(
          second.at,
        );
      }
    }
  });

  test("nothing starts early", () => {
    const early = [...scene.starts].filter(([, seen]) => seen.some(({ at, slot }) => at < slot - clockErrorMs));
    expect(early).toEqual([]);
  });

  test("runs claimed by a dead process run again or fail, as their task's policy says", () => {
    const { starts, lost, ended, lastVictim } = scene;
    expect(lost.size, "no claim was ever lost: the test proved nothing").toBeGreaterThan(0);
    for (const run of ended) {
      const key = slotKey(run);
      const again = run.task.startsWith("again");
      if (run.outcome === 0) {
        expect(run.attempt, key).toBe((lost.get(key)?.length ?? 0) + 1);
      } else {
        expect(run.code, key).toBe("WORKER_LOST");
        // If three kills in a row hit the same run, the store takes the run for the cause of the kills and fails it.
        if (again) expect(run.attempt, key).toBe(taskOptions.workerLosses.usual);
      }
      if (!again) expect(starts.get(key)?.length ?? 0, key).toBeLessThanOrEqual(1);
    }
    expect(ended.filter(({ code }) => code === "WORKER_LOST").length).toBeGreaterThan(0);
    expect([...lost.values()].filter((nodes) => nodes.at(-1) === lastVictim).length).toBeGreaterThan(0);
  });

  test("counters match the rows", async () => {
    const { database, schema, ended, lost } = scene;
    const { rows } = await database.query(
      `select sum(succeeded)::int as succeeded, sum(failed)::int as failed, sum(retried)::int as retried from (
         select succeeded, failed, retried from ${schema}.tally union all select succeeded, failed, retried from ${schema}.tally_delta) x`,
    );
    expect(rows[0]).toEqual({
      succeeded: ended.filter(({ outcome }) => outcome === 0).length,
      failed: ended.filter(({ outcome }) => outcome === 1).length,
      retried: [...lost.values()].flat().length,
    });
  });
});
