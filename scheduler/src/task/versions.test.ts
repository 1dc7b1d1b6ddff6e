import { describe, expect, it } from "vitest";
import { every } from "../schedule/schedule.ts";
import { defineTask, type TaskOptions } from "./task.ts";
import type { VersionRecord } from "./task-record.ts";
import { differences, staleTask } from "./versions.ts";

const version = (number: number, options: TaskOptions, reason = ""): VersionRecord => ({
  version: number,
  definition: defineTask("settle", options),
  author: `author-${number}`,
  reason,
  changedMs: Date.UTC(2030, 0, number),
});

describe("the error for a stale change", () => {
  it("names both versions, the author, time and reason of the present one, and the differences", () => {
    const present = version(3, { schedule: every("2s"), timeout: "1m" }, "too slow");
    const { code, message, hint } = staleTask("settle", 2, present, version(2, { schedule: every("1s") }));
    expect(code).toBe("TASK_STALE");
    expect(message).toBe(
      "task settle is at version 3, by author-3 at 2030-01-03T00:00:00.000Z (too slow); this change was made from " +
        "version 2; what differs from version 2: schedule, timeoutMs",
    );
    expect(hint).toContain("carillon tasks show settle");
  });

  it("covers a change that was reverted, a version that never existed, and a missing task", () => {
    const same = { schedule: every("1s") };
    expect(staleTask("t", 1, version(3, same), version(1, same)).message).toMatch(/from version 1: nothing$/);
    expect(staleTask("t", 9, version(3, same), undefined).message).toMatch(/version 3.* there is no version 9$/);
    expect(staleTask("t", 1, undefined, undefined).message).toMatch(/there is no task t.*version 1$/);
  });
});

it("differences compare parts by content, not by the order of keys", () => {
  const a = defineTask("t", { command: { argv: ["a"], env: { A: "1", B: "2" } } });
  const b = defineTask("t", { command: { argv: ["a"], env: { B: "2", A: "1" } }, description: "other" });
  expect(differences(a, a)).toEqual([]);
  expect(differences(a, b)).toEqual(["description"]);
  expect(differences(a, { ...a, command: null })).toEqual(["command"]);
  expect(differences(a, { ...a, priority: 7, asDefined: { priority: 5 } })).toEqual(["priority"]);
  expect(differences({ ...a, asDefined: { priority: 5 } }, { ...a, asDefined: { priority: 4 } })).toEqual([
    "asDefined",
  ]);
});
