import { expect, test } from "vitest";
import { heldRows } from "./anchored.ts";

const held = (before: string, now: string, more = false) => {
  const { rows, news, gone } = heldRows([...before], [...now], (row) => row, more);
  return [rows.join(""), news, [...gone].join("")];
};

test("rows keep their places when rows are added, removed or moved", () => {
  expect(held("abc", "abc")).toEqual(["abc", 0, ""]);
  expect(held("abc", "xabyc")).toEqual(["abc", 2, ""]);
  expect(held("abc", "cab")).toEqual(["abc", 0, ""]);
  expect(held("abc", "ac")).toEqual(["abc", 0, "b"]);
});

test("a further page is appended; rows that newer rows pushed off the page do not count as removed", () => {
  expect(held("abc", "abcde")).toEqual(["abcde", 0, ""]);
  expect(held("abc", "xabcd")).toEqual(["abcd", 1, ""]);
  expect(held("abc", "xya", true)).toEqual(["abc", 2, ""]);
  expect(held("abc", "xya")).toEqual(["abc", 2, "bc"]);
  expect(held("abc", "xyz", true)).toEqual(["abc", 3, ""]);
});
