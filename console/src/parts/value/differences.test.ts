import { expect, test } from "vitest";
import { differences } from "./differences.ts";

test("each difference is listed with its path, and equal parts are not listed", () => {
  const was = { name: "a", schedule: { type: "cron", expression: "1 * * * *" }, gone: 1, same: [1, { a: 1 }] };
  const is = { name: "a", schedule: { type: "cron", expression: "2 * * * *" }, come: null, same: [1, { a: 1 }] };
  expect(differences(was, is)).toEqual([
    { part: "schedule.expression", was: "1 * * * *", is: "2 * * * *" },
    { part: "gone", was: 1, is: undefined },
    { part: "come", was: undefined, is: null },
  ]);
  expect(differences(was, was)).toEqual([]);
  expect(differences(null, { a: 1 })).toEqual([{ part: "", was: null, is: { a: 1 } }]);
});

test("for lists of plain values, the removed and the added values are listed", () => {
  expect(differences({ days: ["a", "b", "c"] }, { days: ["b", "c", "d"] })).toEqual([
    { part: "days", was: ["a"], is: ["d"] },
  ]);
  expect(differences([1, 2], [1, 2, 3])).toEqual([{ part: "", was: undefined, is: [3] }]);
  expect(differences([1, 2], [2, 1])).toEqual([{ part: "", was: [1, 2], is: [2, 1] }]);
  expect(differences([{ a: 1 }], [{ a: 2 }])).toEqual([{ part: "", was: [{ a: 1 }], is: [{ a: 2 }] }]);
});
