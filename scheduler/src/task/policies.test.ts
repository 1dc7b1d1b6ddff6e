import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Random } from "../base/random.ts";
import { every } from "../schedule/schedule.ts";
import { edited, editedParts, keepEdits, reverted } from "./edits.ts";
import { type RetryPolicy, retryDelay } from "./policies.ts";
import { defineTask, type TaskOptions } from "./task.ts";

const invalid = (part: string) =>
  expect.objectContaining({
    code: "TASK_INVALID",
    message: expect.stringContaining(part),
    hint: expect.stringMatching(/\S/),
  });

describe("routes and limits of a task", () => {
  it("are absent from a task without them", () => {
    const plain = defineTask("t");
    expect(defineTask("t", { route: "any", labels: {}, limit: {} })).toEqual(plain);
    for (const part of ["route", "labels", "limit", "rate"]) expect(plain).not.toHaveProperty(part);
  });

  it("are stored in one canonical form", () => {
    expect(defineTask("t", { route: { hash: "key" } }).route).toEqual({ by: "hash" });
    expect(defineTask("t", { route: { pin: "atlas" } }).route).toEqual({ by: "pin", node: "atlas" });
    expect(defineTask("t", { route: { shards: 4 } }).route).toEqual({ by: "shards", shards: 4 });
    for (const route of [
      "random",
      "round-robin",
      "least-loaded",
      "least-recently-used",
      "sticky",
      "broadcast",
    ] as const)
      expect(defineTask("t", { route }).route).toEqual({ by: route });
    expect(defineTask("t", { labels: { gpu: "a100" } }).labels).toEqual({ gpu: "a100" });
    expect(defineTask("t", { limit: { perKey: 2 } }).limit).toEqual({ perKey: 2, perWorker: null });
    expect(defineTask("t", { rate: { limit: 100, per: "1m" } }).rate).toEqual({
      limit: 100,
      perMs: 60_000,
      byKey: false,
    });
  });

  it.each<[string, unknown, string]>([
    ["route", "fastest", "route cannot be"],
    ["route", null, "route cannot be"],
    ["route", {}, "route cannot be"],
    ["route", { hash: "payload" }, "route cannot be"],
    ["route", { hash: "key", pin: "a" }, "route cannot be"],
    ["route", { pin: "" }, "route.pin"],
    ["route", { pin: 7 }, "route.pin"],
    ["route", { shards: 0 }, "route.shards cannot be 0"],
    ["route", { shards: 1.5 }, "route.shards cannot be 1.5"],
    ["route", { shards: 1_001 }, "route.shards cannot be 1001"],
    ["labels", { gpu: 1 }, "labels must hold texts"],
    ["labels", JSON.parse('{"__proto__":"a"}'), "labels must hold texts"],
    ["labels", ["gpu"], "labels must hold texts"],
    ["labels", "gpu", "labels must hold texts"],
    ["limit", 5, "limit cannot be 5"],
    ["limit", { perTask: 1 }, 'limit has no "perTask"'],
    ["limit", { perKey: 0 }, "limit.perKey cannot be 0"],
    ["limit", { perWorker: "2" }, 'limit.perWorker cannot be "2"'],
    ["rate", 5, "rate cannot be 5"],
    ["rate", "fast", 'rate cannot be "fast"'],
    ["rate", { limit: 5 }, "rate.per is missing"],
    ["rate", { limit: 0, per: "1s" }, "rate.limit cannot be 0"],
    ["rate", { limit: 5, per: "400d" }, "longer than a year"],
    ["rate", { limit: 5, per: "1s", key: "user" }, "rate.key cannot be"],
    ["rate", { limit: 5, per: "1s", burst: 2 }, 'rate has no "burst"'],
  ])("refuse %s: %j", (option, value, part) => {
    expect(() => defineTask("t", { [option]: value } as TaskOptions)).toThrow(invalid(part));
  });

  it.each<[TaskOptions, string]>([
    [{ rate: { limit: 1, per: "1s" }, overlap: "skip" }, 'rate cannot go with overlap: "skip"'],
    [{ limit: { perKey: 1 }, overlap: "replace" }, 'limit.perKey cannot go with overlap: "replace"'],
    [{ limit: { perWorker: 1 }, overlap: "skip" }, "limit.perWorker cannot go with"],
    [{ rate: { limit: 1, per: "1s" }, overlap: { queue: 1 } }, 'rate cannot go with overlap: {"queue":1}'],
    [{ route: "broadcast", overlap: "queue" }, 'route: "broadcast" cannot go with an overlap limit'],
    [{ route: { shards: 2 }, limit: { perWorker: 1 } }, "route: { shards } cannot go with limit.perWorker"],
    [{ route: { shards: 2 }, rate: { limit: 1, per: "1s" } }, "route: { shards } cannot go with rate"],
    [{ route: "broadcast", schedule: every("5s", { mode: "delay" }) }, "cannot go with a fixed delay"],
  ])("refuse contradictory options: %j", (options, part) => {
    expect(() => defineTask("t", options)).toThrow(invalid(part));
  });

  it("are edited, removed, kept across the code's next start, and reverted", () => {
    const code = defineTask("t", { route: "sticky" });
    const limited = edited(code, { rate: { limit: 5, per: "1s" } });
    expect(limited.rate).toMatchObject({ limit: 5 });
    expect(editedParts(limited)).toEqual(["rate"]);
    expect(keepEdits(code, limited)).toEqual(limited);
    expect(reverted(limited, ["rate"])).toEqual(code);
    const free = edited(code, { route: "any" });
    expect(free).not.toHaveProperty("route");
    expect(keepEdits(code, free)).toEqual(free);
    expect(reverted(free, ["route"])).toEqual(code);
    expect(() => edited(defineTask("t", { overlap: "skip" }), { rate: { limit: 5, per: "1s" } })).toThrow(
      invalid("rate cannot go"),
    );
  });
});

const always = (value: number): Random => ({ next: () => value });
const policy = (part: Partial<RetryPolicy> = {}): RetryPolicy => ({
  attempts: 5,
  backoff: "fixed",
  delayMs: 1_000,
  maxDelayMs: 60_000,
  jitter: 0,
  ...part,
});

describe("retry delays", () => {
  it("fixed delays are all equal, and there is none after the last attempt", () => {
    expect([1, 2, 3, 4, 5, 6].map((attempt) => retryDelay(policy(), attempt, always(0)))).toEqual([
      1_000,
      1_000,
      1_000,
      1_000,
      null,
      null,
    ]);
    expect(retryDelay(policy({ attempts: 1 }), 1, always(0))).toBeNull();
  });

  it("exponential delays double up to the maximum", () => {
    const grown = policy({ backoff: "exponential", attempts: 100, maxDelayMs: 10_000 });
    expect([1, 2, 3, 4, 5, 6, 99].map((attempt) => retryDelay(grown, attempt, always(0)))).toEqual([
      1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000,
    ]);
  });

  it("jitter shortens a delay by up to its share", () => {
    expect(retryDelay(policy({ jitter: 0.2 }), 1, always(0))).toBe(1_000);
    expect(retryDelay(policy({ jitter: 0.2 }), 1, always(0.5))).toBe(900);
    expect(retryDelay(policy({ jitter: 1 }), 1, always(0.999))).toBe(1);
  });

  it("are whole milliseconds within their bounds, whatever the policy", () => {
    const policies = fc.record({
      attempts: fc.integer({ min: 1, max: 1_000 }),
      backoff: fc.constantFrom("fixed" as const, "exponential" as const),
      delayMs: fc.integer({ min: 0, max: 2 ** 40 }),
      maxDelayMs: fc.integer({ min: 0, max: 2 ** 40 }),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(
        policies,
        fc.integer({ min: 1, max: 1_000 }),
        fc.double({ min: 0, max: 0.999999, noNaN: true }),
        (given, attempt, chance) => {
          const pause = retryDelay(given, attempt, always(chance));
          if (attempt >= given.attempts) return pause === null;
          return Number.isSafeInteger(pause) && (pause as number) >= 0 && (pause as number) <= given.maxDelayMs;
        },
      ),
    );
  });
});
