import { expect, it } from "vitest";
import { RecentlySettled } from "./recently-settled.ts";

it("knows which runs settled between a query and its answer, separately for each query", async () => {
  const meanwhile = new RecentlySettled();
  const ended = (...fences: number[]) => meanwhile.add(fences.map((fence) => ({ fence })));
  ended(1);
  await meanwhile.during(async (hasEnded) => {
    expect([1, 2, 9].map(hasEnded)).toEqual([false, false, false]);
    ended(5, 3);
    expect([1, 2, 3, 4, 5, 6].map(hasEnded)).toEqual([false, false, true, false, true, false]);
    await meanwhile.during(async (later) => {
      ended(4, 7);
      expect([3, 4, 5, 7, 8].map(later)).toEqual([false, true, false, true, false]);
    });
    ended(8);
    expect([3, 4, 5, 6, 7, 8].map(hasEnded)).toEqual([true, true, true, false, true, true]);
  });
  ended(9);
  await meanwhile.during(async (hasEnded) => expect([8, 9].map(hasEnded)).toEqual([false, false]));
});
