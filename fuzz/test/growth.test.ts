import { describe, expect, it } from "vitest";
import { readYaml } from "../../scheduler/src/apply/read.ts";
import { costsTooMuch, pumped, superlinear } from "../src/growth.ts";
import { spentMs } from "../src/processor.ts";

/** Uses CPU time for `ms`, because CPU time and not elapsed time is measured. */
const spend = (ms: number): void => {
  const until = spentMs() + ms;
  while (spentMs() < until);
};
const wait = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
const most = 64_000;
const texts = ["x".repeat(most / 4), "x".repeat(most)] as const;
const times = (text: string) => text.length / most;

describe("the time to read longer texts", () => {
  it("is reported if it grows with the square of the length, beside a linear part", () => {
    const read = (text: string) => spend(10 * times(text) + 80 * times(text) ** 2);
    expect(costsTooMuch(read, ...texts)).toMatch(/^takes \d+ ms for 16000 characters and \d+ ms for 64000$/);
  });

  it("is reported with the text, for a reader that rescans at each space of a gap", () => {
    const feed = (text: string) => void text.replace(/\s+$/, "");
    const grown = { corpus: [`tasks:${" ".repeat(40)}x`], most: 16_000, feed };
    expect(superlinear({ grown }, 7, () => undefined)?.input).toMatch(/" +", again and again/);
  });

  it("is reported even if the processor was busy with other work in all but one measurement", () => {
    let reads = 0;
    const read = (text: string) => spend(80 * times(text) ** 2 + (text.length < most && ++reads !== 2 ? 100 : 0));
    expect(costsTooMuch(read, ...texts)).toBeDefined();
  });

  it("is accepted if the long text only waited, or was read before the code was compiled", () => {
    const late = (text: string) => {
      spend(80 * times(text));
      if (text.length === most) wait(200);
    };
    expect(costsTooMuch(late, ...texts)).toBeUndefined();
    let cold = 4;
    const slowAtFirst = (text: string) => spend(80 * times(text) + (text.length === most && --cold > 0 ? 400 : 0));
    expect(costsTooMuch(slowAtFirst, ...texts)).toBeUndefined();
  });

  it("is accepted for YAML that was once reported wrongly on a busy machine", () => {
    const flow = ["tasks:\n  a: { schedule: '0 2 * * *' }\n  b: &b { timeo", "ut: 1", "h }\n  c: *b\n"] as const;
    const block = ["bundle: x\ntasks:", "\n  a:\n    slotPay", "load: |\n      text\n"] as const;
    const read = (text: string) => void readYaml("tasks.yaml", text);
    for (const parts of [flow, block])
      expect(costsTooMuch(read, pumped(parts, most / 4), pumped(parts, most))).toBeUndefined();
  });
});
