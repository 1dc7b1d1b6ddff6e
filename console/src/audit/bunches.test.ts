import { expect, test } from "vitest";
import { bunchesOf } from "./bunches.ts";
import type { AuditEntry } from "./words.ts";

const entry = (number: number, change: Partial<AuditEntry> = {}): AuditEntry => ({
  entry: number,
  at: new Date(1_800_000_000_000 + number * 1_000).toISOString(),
  who: "ann",
  act: "cancel",
  about: "run",
  named: String(number),
  task: "settle",
  before: null,
  after: null,
  why: "a bad file",
  ...change,
});
const numbers = (entries: AuditEntry[]) => bunchesOf(entries).map((bunch) => bunch.map(({ entry: number }) => number));

test("adjacent audit entries of the same actor, act and reason on many subjects form one line", () => {
  const many = [9, 8, 7, 6].map((number) => entry(number));
  expect(numbers([...many, entry(5, { who: "bob" }), entry(4, { why: "" }), entry(3, { act: "run" })])).toEqual([
    [9, 8, 7, 6],
    [5],
    [4],
    [3],
  ]);
});

test("a few entries, or entries far apart, stay on lines of their own", () => {
  expect(numbers([entry(9), entry(8), entry(7)])).toEqual([[9], [8], [7]]);
  expect(numbers([400, 300, 200, 100].map((number) => entry(number)))).toEqual([[400], [300], [200], [100]]);
  expect(numbers([])).toEqual([]);
});
