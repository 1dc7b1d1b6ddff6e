import { expect, it } from "vitest";
import { nameHolder } from "./name-holder.ts";

it.each([
  ["node-7", 42, "a live process: pid 42 on node-7"],
  ["node-7", 0, "a live process on node-7"],
  ["", 42, "a live process: pid 42"],
  ["", 0, "a live process"],
])("a name's holder with host %j and pid %i is described with the known parts", (host, pid, words) => {
  expect(nameHolder({ host, pid })).toBe(words);
});
