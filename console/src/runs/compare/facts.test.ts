import { describe, expect, test } from "vitest";
import { wordsIn } from "../../messages/texts.ts";
import type { Run } from "../answers.ts";
import { factsOf, ratioOf } from "./facts.ts";

const run = (given: Partial<Run>): Run =>
  ({
    task: "load",
    state: "succeeded",
    due: "2026-11-28T10:00:00Z",
    ended: "2026-11-28T10:00:10Z",
    lateMs: 4,
    tookMs: 1_000,
    attempt: 1,
    node: "w1",
    release: null,
    version: 3,
    source: "slot",
    priority: 5,
    key: null,
    labels: {},
    overrides: null,
    ...given,
  }) as Run;

describe("two runs side by side", () => {
  test("differ in what may explain their ends, not in times of day or a few ms", () => {
    const other = run({ due: "2026-11-29T10:00:00Z", lateMs: 40, tookMs: 5_000, state: "failed", version: 4 });
    const facts = factsOf([run({}), other], wordsIn("en", "UTC"));
    expect(facts.filter(({ differs }) => differs).map(({ name, texts }) => [name, ...texts])).toEqual([
      ["State", "succeeded", "failed"],
      ["Took", "1 s", "5 s"],
      ["Version", "3", "4"],
    ]);
    expect(facts.find(({ name }) => name === "Took")?.ratio).toBe(5);
  });

  test("have no line for what neither has, and one for their tasks only if they differ", () => {
    const names = factsOf([run({}), run({ key: "k" })], wordsIn("en", "UTC")).map(({ name }) => name);
    expect(names).toContain("Key");
    expect(names).not.toContain("Release");
    expect(names).not.toContain("Task");
    const others = factsOf([run({}), run({ task: "store" })], wordsIn("en", "UTC"));
    expect(others[0]).toMatchObject({ name: "Task", texts: ["load", "store"], differs: true });
  });

  test("have a ratio of durations that clearly differ", () => {
    expect([ratioOf(1_000, 2_000), ratioOf(1_000, 400), ratioOf(1_000, 1_200), ratioOf(1, 40)]).toEqual([
      2,
      0.4,
      undefined,
      undefined,
    ]);
    expect([ratioOf(null, 5), ratioOf(0, 3_000)]).toEqual([undefined, 3_000]);
  });
});
