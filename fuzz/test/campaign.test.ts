import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Fed, feed, replay } from "../src/campaign.ts";
import { closing, lineOf } from "../src/closing.ts";
import type { Target } from "../src/target.ts";

const numbers = (feedOne: (input: number) => void | Promise<void>): Target => ({
  name: "numbers",
  share: 1,
  inputs: fc.nat(1_000),
  feed: (input) => feedOne(input as number),
});
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

describe("counting of inputs", () => {
  it("feeds all inputs, however slow they are: the time limit applies only to shrinking", async () => {
    let count = 0;
    const slow = numbers(async () => {
      count++;
      await pause(1);
    });
    const fed = await feed(slow, { seed: 7, inputs: 150, shrinkMs: 20 });
    expect(fed).toMatchObject({ inputs: 150, asked: 150, found: [] });
    expect(count).toBe(150);
  });

  it("stops at the first failing input, and reports its smallest form and the command that feeds it again", async () => {
    const seen: number[] = [];
    const broken = numbers((input) => {
      seen.push(input);
      if (input > 500) throw new Error("too much");
    });
    const fed = await feed(broken, { seed: 7, inputs: 2_500 });
    const first = seen.findIndex((input) => input > 500);
    expect(fed).toMatchObject({ inputs: first + 1, asked: 2_500, found: [{ input: "501" }] });
    const [, seed, path] =
      /^npm run prove -- fuzz numbers --seed (\d+) --path ([\d:]+)$/.exec(fed.found[0]?.command ?? "") ?? [];
    expect(await replay(broken, Number(seed), path as string)).toMatchObject({ input: "501" });

    const slow = numbers(async (input) => {
      if (input <= 500) return;
      await pause(30);
      throw new Error("too much, late");
    });
    const hurried = await feed(slow, { seed: 7, inputs: 2_500, shrinkMs: 1 });
    expect(hurried).toMatchObject({ inputs: first + 1, found: [{ input: String(seen[first]) }] });
  });
});

describe("the closing line", () => {
  const fed: Fed = {
    target: "a",
    inputs: 10,
    asked: 10,
    ms: 1_000,
    slowestMs: 3,
    waitedMs: 0,
    found: [],
  };
  const asked = [
    { target: "a", inputs: 10 },
    { target: "b", inputs: 20 },
  ];

  it("passes if every input was fed", () => {
    const { line, passes } = closing([fed, { ...fed, target: "b", inputs: 20, asked: 20 }], asked, {
      seed: 7,
      ms: 2e3,
    });
    expect(passes).toBe(true);
    expect(line).toMatchObject({
      targets: 2,
      inputs: 30,
      found: 0,
      cut_short: {},
      inputs_per_target: { a: 10, b: 20 },
    });
  });

  it("names targets that were cut short or never started, and does not pass", () => {
    const cut = { ...fed, target: "b", inputs: 13, asked: 20 };
    expect(lineOf(cut)).toMatch(/^✗ b +13 inputs .*, cut short: 20 were asked for$/);
    expect(closing([fed, cut], asked, { seed: 7, ms: 2e3 })).toMatchObject({
      passes: false,
      line: { inputs: 23, found: 0, cut_short: { b: { inputs: 13, of: 20 } } },
    });
    expect(closing([fed], asked, { seed: 7, ms: 2e3 })).toMatchObject({
      passes: false,
      line: { targets: 1, inputs: 10, cut_short: { b: { inputs: 0, of: 20 } } },
    });
  });
});
