import { expect, test } from "vitest";
import { sortedRows } from "./sorting.ts";

test("rows are sorted by number or text; equal rows keep their order, and rows without a value are last", () => {
  const rows = [
    { name: "task-10", ms: null },
    { name: "task-9", ms: 5 },
    { name: "Task-1", ms: 70 },
    { name: "task-2", ms: 5 },
  ];
  const names = (by: (row: (typeof rows)[number]) => string | number | null, descends: boolean) =>
    sortedRows(rows, by, descends).map(({ name }) => name);
  expect(names(({ name }) => name, false)).toEqual(["Task-1", "task-2", "task-9", "task-10"]);
  expect(names(({ ms }) => ms, false)).toEqual(["task-9", "task-2", "Task-1", "task-10"]);
  expect(names(({ ms }) => ms, true)).toEqual(["Task-1", "task-9", "task-2", "task-10"]);
});
