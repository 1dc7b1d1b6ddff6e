import { expect, test } from "vitest";
import { fitting } from "./columns.ts";

const columns = [
  { id: "name", width: "minmax(140px, 2fr)" },
  { id: "due", width: "90px", rank: 1 },
  { id: "node", width: "minmax(90px, 1fr)", rank: 3 },
  { id: "tries", width: "60px", rank: 2 },
];
const ids = (width: number, choices: Record<string, boolean> = {}) =>
  fitting(columns, choices, width).map(({ id }) => id);

test("columns that do not fit are hidden by rank, except those that the user chose", () => {
  expect(ids(460)).toEqual(["name", "due", "node", "tries"]);
  expect(ids(459)).toEqual(["name", "due", "tries"]);
  expect(ids(300)).toEqual(["name", "due"]);
  expect(ids(100)).toEqual(["name"]);
  expect(ids(300, { node: true })).toEqual(["name", "node"]);
  expect(ids(900, { due: false })).toEqual(["name", "node", "tries"]);
});
