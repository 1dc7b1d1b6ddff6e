import { expect, it } from "vitest";
import { sideBySide } from "./side-by-side.ts";

it("processes each item once, in order, with the given concurrency", async () => {
  const [begun, ends]: [number[], (() => void)[]] = [[], []];
  const all = sideBySide([1, 2, 3, 4, 5], 2, (item) => {
    begun.push(item);
    return new Promise<void>((resolve) => ends.push(resolve));
  });
  for (const done of [
    [1, 2],
    [1, 2, 3],
    [1, 2, 3, 4],
    [1, 2, 3, 4, 5],
  ]) {
    await new Promise(setImmediate);
    expect(begun).toEqual(done);
    ends.shift()?.();
  }
  for (const end of ends) end();
  await all;
});

it("fails with the first failure, and processes the other items", async () => {
  const done: number[] = [];
  const all = sideBySide([1, 2, 3], 2, async (item) => {
    if (item === 1) throw new Error("one");
    done.push(item);
  });
  await expect(all).rejects.toThrow("one");
  expect(done).toEqual([2, 3]);
});
