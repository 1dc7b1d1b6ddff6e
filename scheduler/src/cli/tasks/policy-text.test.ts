import { describe, expect, it } from "vitest";
import type { RunRecord } from "../../run/run-record.ts";
import type { AfterSpec } from "../../task/after.ts";
import { defineTask, type TaskOptions } from "../../task/task.ts";
import { afterText, directionText, followerText, limitsText, routeText } from "./policy-text.ts";

describe("task policies in words", () => {
  it.each<[TaskOptions, string]>([
    [{}, ""],
    [{ route: "round-robin" }, "round-robin"],
    [{ route: { pin: "atlas" } }, "pinned to atlas"],
    [{ route: { shards: 3 } }, "3 shards"],
    [
      { route: { hash: "key" }, labels: { gpu: "a100", zone: "eu" } },
      "hash of the key, workers with gpu=a100, zone=eu",
    ],
    [{ labels: { gpu: "a100" } }, "workers with gpu=a100"],
  ])("the route of %j is: %s", (options, text) => {
    expect(routeText(defineTask("t", options))).toBe(text);
  });

  it.each<[TaskOptions, string]>([
    [{}, ""],
    [{ limit: { perKey: 2, perWorker: 3 } }, "at most 2 at once of a key; at most 3 at once on a worker"],
    [{ rate: { limit: 100, per: "1m" } }, "100 in 1m"],
    [{ rate: { limit: 5, per: "1s", key: true } }, "5 in 1s of each key"],
  ])("the limits of %j are: %s", (options, text) => {
    expect(limitsText(defineTask("t", options))).toBe(text);
  });

  it.each<[NonNullable<TaskOptions["after"]>, string]>([
    ["fetch", "fetch has succeeded"],
    [{ tasks: ["parse", "fetch"], on: "any" }, "each of fetch, parse has ended"],
  ])("the predecessors of %j are: %s", (after, text) => {
    expect(afterText(defineTask("t", { after }).after as AfterSpec)).toBe(text);
  });

  it("a task names its followers and their conditions", () => {
    expect(followerText({ task: "alarm", on: "failure", with: [] })).toBe("alarm, once it has failed");
    expect(followerText({ task: "sum", on: "success", with: ["b"] })).toBe("sum, once it has succeeded and so has b");
    expect(followerText({ task: "sum", on: "any", with: ["b", "c"] })).toBe("sum, once it has ended and so have b, c");
  });

  it("a run names its addressee", () => {
    const run = (over: Partial<RunRecord>) => directionText(over as RunRecord);
    expect(run({})).toBe("");
    expect(run({ addressee: "atlas", shard: [1, 4], limitKey: "atlas" })).toBe("addressed to atlas, part 2 of 4");
    expect(run({ addressee: "atlas", limitKey: "eu" })).toBe("addressed to atlas, limited as eu");
  });
});
