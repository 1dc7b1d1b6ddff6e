/**
 * Tests of tasks on a clock that the test controls, with node:test; with Vitest they look the same.
 *
 *   node --test examples/dist/testing/tasks.test.js        (DATABASE_URL, or the embedded store)
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { firesBetween, type TestTower, testTower } from "carillon/testing";
import { defineTasks, monthEnd } from "./tasks.ts";

let tower: TestTower;
let broken = 0;
const settled: string[] = [];

before(async () => {
  tower = await testTower({
    now: "2030-01-15T12:00:00Z",
    ...(process.env.DATABASE_URL ? { store: process.env.DATABASE_URL } : {}),
    tasks: (carillon) =>
      defineTasks(carillon, {
        async settle(month) {
          if (broken-- > 0) throw new Error("the ledger is closed");
          settled.push(month);
          return 12;
        },
      }),
  });
});
after(() => tower?.close());

test("the task fires at midnight on the month's last day in Berlin, also across a change of clocks", () => {
  assert.deepEqual(
    firesBetween(monthEnd, "2030-03-01T00:00:00Z", "2030-05-01T00:00:00Z").map((at) => at.toISOString()),
    ["2030-03-30T23:00:00.000Z", "2030-04-29T22:00:00.000Z"],
  );
});

test("two months of virtual time pass at once", async () => {
  const ended = await tower.advanceTo("2030-03-15T00:00:00Z");
  assert.deepEqual(
    ended.map(({ task, outcome }) => [task, outcome]),
    [
      ["settle-accounts", "succeeded"],
      ["settle-accounts", "succeeded"],
    ],
  );
  assert.deepEqual(settled, ["2030-01", "2030-02"]);
});

test("a run that finds the ledger closed is retried after ten minutes, then after twenty", async () => {
  broken = 2;
  const began = tower.now().getTime();
  const { outcome, attempts, result, logs } = await tower.run("settle-accounts");
  assert.deepEqual({ outcome, attempts }, { outcome: "succeeded", attempts: 3 });
  assert.deepEqual(result, { month: "2030-03", accounts: 12 });
  assert.equal(logs.length, 3);
  // The two retries wait ten and then twenty minutes.
  assert.ok(tower.now().getTime() - began >= 30 * 60_000);
});

test("after the third failed attempt the run fails with the handler's error", async () => {
  broken = 3;
  const { outcome, error } = await tower.run("settle-accounts");
  assert.equal(outcome, "failed");
  assert.equal(error?.message, "the ledger is closed");
});
