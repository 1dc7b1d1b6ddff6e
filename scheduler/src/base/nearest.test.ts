import { expect, test } from "vitest";
import { editDistance, meant, nearest } from "./nearest.ts";

test("the nearest name differs by at most two letters, or by a third of a long name", () => {
  const names = ["retry", "rate", "route", "onWorkerLost"];
  expect(
    ["retries", "Retry", "retires", "rout", "onWorkersLosts", "colour", "", "x".repeat(1_000)].map((word) =>
      nearest(word, names),
    ),
  ).toEqual(["retry", "retry", "retry", "route", "onWorkerLost", "", "", ""]);
  expect(["carilon", "Carilon"].map((word) => nearest(word, ["Carillon", "carillon"]))).toEqual([
    "carillon",
    "Carillon",
  ]);
  expect(meant("colour", names)).toBe("");
  expect(meant("retires", names)).toBe('; did you mean "retry"?');
});

test("an edit distance is counted only up to the given maximum", () => {
  expect(editDistance("abc", "abd")).toBe(1);
  expect(editDistance("abcdef", "ghijkl")).toBe(4);
  expect(editDistance("abcdef", "ghijkl", 10)).toBe(6);
});
