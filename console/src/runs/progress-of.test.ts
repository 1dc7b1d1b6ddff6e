import { expect, test } from "vitest";
import { measured } from "./progress-of.ts";

test.each([
  [
    { part: 3, of: 120 },
    { done: 3, total: 120, rest: {} },
  ],
  [
    { total: 8, done: 8, file: "a.csv" },
    { done: 8, total: 8, rest: { file: "a.csv" } },
  ],
  [0.25, { done: 0.25, total: 1, rest: {} }],
  [
    { percent: 40, step: "copy" },
    { done: 40, total: 100, rest: { step: "copy" } },
  ],
])("%j is read as progress", (progress, found) => {
  expect(measured(progress)).toEqual(found);
});

test.each([null, "half", 12, [1, 2], { done: 3 }, { of: 0, done: 0 }, { done: 9, of: 8 }, { of: 5, name: "x" }])(
  "%j is not read as progress",
  (progress) => {
    expect(measured(progress)).toBeUndefined();
  },
);
