import { expect, test } from "vitest";
import { CutOff, cutOffAfter } from "./cut-off.ts";

test("work that never ends is interrupted, and later code runs normally", () => {
  const endless = () => {
    for (;;);
  };
  expect(() => cutOffAfter(20, endless)).toThrow(CutOff);
  // The interruption must not be caught even by a `try` in the work.
  const caught = () => {
    for (;;)
      try {
        endless();
      } catch {
        // Never reached, because V8 terminates the code without running its catch blocks.
      }
  };
  expect(() => cutOffAfter(20, caught)).toThrow(CutOff);
  expect(() => cutOffAfter(20, () => /^(a+)+$/.test(`${"a".repeat(60)}!`))).toThrow(CutOff);
  expect(cutOffAfter(1_000, () => ["a"])).toEqual(["a"]);
});

test("an error from the work is rethrown unchanged", () => {
  const error = new RangeError("x");
  expect(() =>
    cutOffAfter(1_000, () => {
      throw error;
    }),
  ).toThrow(error);
});
