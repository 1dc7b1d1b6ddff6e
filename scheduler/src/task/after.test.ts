import { expect, test } from "vitest";
import { inOrder } from "./after.ts";

const task = (name: string, ...tasks: string[]) => ({ name, after: { tasks, on: "success" as const } });
const names = (definitions: { name: string }[]) => definitions.map(({ name }) => name);

test("tasks are sorted after their predecessors, however long the chain is", () => {
  expect(names(inOrder([task("c", "a", "b"), task("b", "a"), { name: "a" }, task("d", "elsewhere")]))).toEqual([
    "a",
    "b",
    "c",
    "d",
  ]);
  const chain = Array.from({ length: 50_000 }, (_, at) => task(`t${at}`, `t${at + 1}`));
  expect(names(inOrder(chain)).slice(0, 2)).toEqual(["t49999", "t49998"]);
});

test("a cycle is reported with its names", () => {
  const definitions = [task("x", "a"), task("a", "b"), task("b", "c", "a"), task("c")];
  expect(() => inOrder(definitions)).toThrow("a after b after a");
});
