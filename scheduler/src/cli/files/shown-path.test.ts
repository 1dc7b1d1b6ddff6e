import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { shownPath } from "./shown-path.ts";

it.each([
  ["tasks.mjs", "tasks.mjs"],
  ["./a/../b/tasks.mjs", join("b", "tasks.mjs")],
  ["..foo", "..foo"],
  ["..foo/tasks.mjs", join("..foo", "tasks.mjs")],
  [".", "."],
  ["..", resolve("..")],
  ["../tasks.mjs", resolve("../tasks.mjs")],
  ["/etc/hosts", "/etc/hosts"],
])("%s is shown as %s", (path, shown) => {
  expect(shownPath(path)).toBe(shown);
});
