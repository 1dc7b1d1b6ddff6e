import { afterAll, beforeAll, expect, test } from "vitest";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
beforeAll(async () => {
  await stage.open();
  await stage.task("work", { group: "nobody" });
});
afterAll(() => stage.close());

test("POST /v1/runs takes a durability for each run, and a task has one that can be edited", async () => {
  const api = stage.client("editor");
  const { runs } = await api.enqueueRuns({ runs: [{ task: "work", durability: "relaxed" }, { task: "work" }] });
  expect(runs).toEqual([
    { run: expect.any(Number), created: true },
    { run: expect.any(Number), created: true },
  ]);
  // The first relaxed enqueue is recorded, so that a crash of the server is noticed.
  expect(await stage.rows("select relaxed from $s.cluster")).toEqual([{ relaxed: true }]);
  const before = await api.getTask({ task: "work" });
  expect(before.definition).not.toHaveProperty("durability");
  await api.editTask({ task: "work", options: { durability: "relaxed" } }, { ifVersion: before.version });
  expect((await api.getTask({ task: "work" })).definition).toMatchObject({ durability: "relaxed" });
  expect(await stage.rows("select name from $s.task where relaxed")).toEqual([{ name: "work" }]);
  const wrong = { task: "work", options: { durability: "sometimes" } } as never;
  const { version } = await api.getTask({ task: "work" });
  await expect(api.editTask(wrong, { ifVersion: version })).rejects.toMatchObject({
    code: "REQUEST_INVALID",
    path: expect.stringContaining("durability"),
  });
});
