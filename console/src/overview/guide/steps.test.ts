import { expect, test } from "vitest";
import { type Progress, placesOf } from "./steps.ts";

const nothing: Progress = { workers: 0, task: undefined, run: undefined, hasRun: false };

test.each<[string, Partial<Progress>, string[]]>([
  ["nothing", {}, ["present", "later", "later", "later"]],
  ["a worker", { workers: 1 }, ["done", "present", "later", "later"]],
  ["a task without a worker", { task: "hello" }, ["present", "done", "later", "later"]],
  ["a task and a worker", { workers: 2, task: "hello" }, ["done", "done", "present", "later"]],
  ["a run that waits", { task: "hello", run: 1 }, ["present", "done", "done", "later"]],
  ["a run under way", { workers: 1, task: "hello", run: 1 }, ["done", "done", "done", "present"]],
  ["a run that has ended", { workers: 1, task: "hello", run: 1, hasRun: true }, ["done", "done", "done", "done"]],
])("the guide of a cluster with %s is at its step", (_, given, expected) => {
  const { worker, task, run, see } = placesOf({ ...nothing, ...given });
  expect([worker, task, run, see]).toEqual(expected);
});
