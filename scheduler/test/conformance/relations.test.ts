import { afterEach, describe, expect, it } from "vitest";
import type { Carillon, RunInput } from "../../src/index.ts";
import { every } from "../../src/schedule/schedule.ts";
import { edited } from "../../src/task/edits.ts";
import { type TestTower, testTower } from "../../src/testing/testing.ts";
import { postgres } from "../support/servers.ts";

let tower: TestTower;
afterEach(() => tower.close());

async function open(tasks: (carillon: Carillon) => void): Promise<void> {
  const now = "2030-01-01T00:00:00Z";
  tower = await testTower({ store: postgres().direct, now, groups: ["default"], concurrency: 500, tasks });
}
const runs = async (task: string) => (await tower.carillon.open()).store.runs.list({ task, limit: 10_000 });

function tallied(outcomes: readonly string[]): Record<string, number> {
  const tally: Record<string, number> = {};
  for (const outcome of outcomes) tally[outcome] = (tally[outcome] ?? 0) + 1;
  return tally;
}

describe("runs started by other runs, in large numbers", () => {
  it("5,000 children, some failing and some unclaimed until their task is removed, are joined once", async () => {
    const joined: RunInput[][] = [];
    await open((carillon) => {
      carillon.task<number>("piece", {}, (_run, n) => {
        if (n % 10 === 0) throw new Error("no luck");
        return n;
      });
      carillon.task("doomed", { group: "elsewhere" }, () => undefined);
      carillon.task("whole", {}, async (run) => void joined.push(await run.inputs()));
      carillon.task("split", {}, (run) =>
        run.fanOut(
          Array.from({ length: 5_000 }, (_, n) => ({ task: n < 4_000 ? "piece" : "doomed", payload: n, key: `k${n}` })),
          { join: "whole" },
        ),
      );
    });
    await tower.carillon.run("split");
    await tower.advance("10m");
    expect(tallied((await runs("piece")).map(({ state }) => state))).toEqual({ succeeded: 3_600, failed: 400 });
    expect(joined, "not before all have ended").toEqual([]);
    await tower.carillon.remove("doomed");
    await tower.advance("1m");
    expect(joined).toHaveLength(1);
    expect(tallied((joined[0] as RunInput[]).map(({ outcome }) => outcome))).toEqual({
      succeeded: 3_600,
      failed: 400,
      cancelled: 1_000,
    });
    expect(new Set(joined[0]?.map(({ key }) => key)).size).toBe(5_000);
  });

  it("1,050 parents whose only children end with the removal of one task get their joins at once", async () => {
    await open((carillon) => {
      carillon.task("doomed", { group: "elsewhere" }, () => undefined);
      carillon.task("whole", {}, () => undefined);
      carillon.task("split", {}, (run) => run.fanOut([{ task: "doomed" }], { join: "whole" }));
    });
    await Promise.all(Array.from({ length: 1_050 }, () => tower.carillon.enqueue("split")));
    await tower.advance("1m");
    await tower.carillon.remove("doomed");
    await tower.advance("1s");
    expect(tallied((await runs("whole")).map(({ state }) => state))).toEqual({ succeeded: 1_050 });
  });

  it("200 levels of children, each with its join, end once each", async () => {
    const levels = 200;
    const ups: [number, string[]][] = [];
    await open((carillon) => {
      carillon.task<number>("level", {}, (run, depth) =>
        depth < levels ? run.fanOut([{ task: "level", payload: depth + 1 }], { join: "up", payload: depth }) : "bottom",
      );
      carillon.task<number>("up", {}, async (run, depth) => {
        ups.push([depth, (await run.inputs()).map(({ task, outcome }) => `${task} ${outcome}`)]);
      });
    });
    await tower.carillon.enqueue("level", 1);
    await tower.advance("1h");
    ups.sort(([one], [other]) => one - other);
    expect(ups).toEqual(Array.from({ length: levels - 1 }, (_, i) => [i + 1, ["level succeeded"]]));
    expect(tallied((await runs("level")).map(({ state }) => state))).toEqual({ succeeded: levels });
  });

  it("100 tasks in a chain of `after` run once per slot, and pass the slot on", async () => {
    const last: (string | undefined)[] = [];
    await open((carillon) => {
      carillon.task("step-0", { schedule: every("1h") }, () => 0);
      for (let n = 1; n < 100; n++)
        carillon.task(`step-${n}`, { after: `step-${n - 1}` }, async (run) => {
          const [before] = await run.inputs();
          if (n === 99) last.push(run.slot?.toISOString());
          return (before?.result as number) + 1;
        });
    });
    await tower.advance("150m");
    expect(last).toEqual(["2030-01-01T01:00:00.000Z", "2030-01-01T02:00:00.000Z"]);
    expect((await runs("step-99")).length).toBe(2);
    const { store } = await tower.carillon.open();
    for (const { runId } of await runs("step-99")) expect((await store.runs.find(runId)).result).toBe(99);
  });

  it("two tasks after two tasks, 40 levels deep, are stored, and the last ones run once", async () => {
    const layers = 40;
    await open((carillon) => {
      carillon.task("root", {}, () => undefined);
      for (let n = 0; n < layers; n++)
        for (const side of ["left", "right"])
          carillon.task(
            `${side}-${n}`,
            { after: n === 0 ? "root" : [`left-${n - 1}`, `right-${n - 1}`] },
            () => undefined,
          );
    });
    await tower.carillon.run("root");
    await tower.advance("1h");
    for (const side of ["left", "right"])
      expect((await runs(`${side}-${layers - 1}`)).map(({ state }) => state)).toEqual(["succeeded"]);
  });

  it("a task edited to follow fewer tasks starts at once if it waited only for the removed ones", async () => {
    await open((carillon) => {
      for (const name of ["fetched", "checked"]) carillon.task(name, {}, () => undefined);
      carillon.task("both", { after: ["fetched", "checked"] }, () => undefined);
    });
    await tower.carillon.run("fetched");
    await tower.advance("10m");
    expect(await runs("both")).toEqual([]);
    const { tasks } = (await tower.carillon.open()).store;
    const nowMs = tower.now().getTime();
    const definition = edited((await tasks.byName("both")).definition, { after: ["fetched"] });
    await tasks.save(definition, null, { author: "test", reason: "", nowMs });
    await tower.advance("20m");
    expect((await runs("both")).map(({ createdMs }) => createdMs - nowMs < 1_000)).toEqual([true]);
  });

  it("children are never given up as late, whatever the misfire policy: only slots are", async () => {
    const joined: string[][] = [];
    await open((carillon) => {
      const misfire = { policy: "skip", after: "5s" } as const;
      carillon.task("slow", { overlap: "queue", misfire }, (run) => tower.sleep("10m", run.signal));
      carillon.task("end", {}, async (run) => void joined.push((await run.inputs()).map(({ outcome }) => outcome)));
      carillon.task("begin", {}, (run) =>
        run.fanOut([{ task: "slow" }, { task: "slow" }, { task: "slow" }], { join: "end" }),
      );
    });
    await tower.carillon.run("begin");
    await tower.advance("1h");
    expect(joined).toEqual([["succeeded", "succeeded", "succeeded"]]);
  });
});
