import { describe, expect, it } from "vitest";
import { firstOfEach } from "./first-of-each.ts";

describe("the first item of each claim", () => {
  const named = (runId: number, fence: number, word: string) => ({ runId, fence, word });

  it("is every item if no claim occurs twice", () => {
    const given = [named(1, 7, "a"), named(1, 8, "b"), named(2, 9, "c")];
    expect(firstOfEach(given)).toEqual({ first: given, later: [] });
  });

  it("is determined by run and fence together, in the given order", () => {
    const given = [named(1, 7, "a"), named(2, 8, "b"), named(1, 7, "c"), named(2, 7, "d"), named(2, 8, "e")];
    const { first, later } = firstOfEach(given);
    expect(first.map(({ word }) => word)).toEqual(["a", "b", "d"]);
    expect(later.map(({ word }) => word)).toEqual(["c", "e"]);
  });
});
