import { describe, expect, it } from "vitest";
import { every } from "../schedule/schedule.ts";
import { edited, editedParts, keepEdits, partCalled, reverted } from "./edits.ts";
import { defineTask, type TaskOptions } from "./task.ts";

const code = (options: TaskOptions = {}) => defineTask("settle", { schedule: every("1m"), priority: 5, ...options });

describe("an edit by hand", () => {
  it("keeps beneath what the code says, and stays when the code is stored again", () => {
    const now = edited(code(), { priority: 7, timeout: "5m" });
    expect(now).toEqual({ ...code(), priority: 7, timeoutMs: 300_000, asDefined: { priority: 5, timeoutMs: null } });
    expect(keepEdits(code(), now)).toEqual(now);
  });

  it("lets the code change every other part, and what lies beneath", () => {
    const now = edited(code(), { priority: 7 });
    const next = keepEdits(code({ priority: 1, schedule: every("2m") }), now);
    expect(next).toEqual({ ...code({ schedule: every("2m") }), priority: 7, asDefined: { priority: 1 } });
    expect(reverted(next, ["priority"])).toEqual(code({ priority: 1, schedule: every("2m") }));
  });

  it("is none any more where both agree, whoever came to it", () => {
    const now = edited(code(), { priority: 7 });
    expect(keepEdits(code({ priority: 7 }), now)).toEqual(code({ priority: 7 }));
    expect(edited(now, { priority: 5 })).toEqual(code());
    expect(edited(code(), { priority: 5 })).toEqual(code());
  });

  it("of an edited part still has what the code said at first", () => {
    const twice = edited(edited(code(), { priority: 7 }), { priority: 8, grace: "2s" });
    expect(twice.asDefined).toEqual({ priority: 5, graceMs: 1_000 });
    expect(editedParts(reverted(twice, ["graceMs"]))).toEqual(["priority"]);
    expect(reverted(twice, editedParts(twice))).toEqual(code());
    expect(reverted(code(), [])).toEqual(code());
  });

  it("changes of a policy only what it names", () => {
    const before = code({
      retry: { attempts: 3, delay: "2s", jitter: 0 },
      misfire: { policy: "all", cap: 7, after: "1m" },
    });
    const now = edited(before, { retry: 5, misfire: { policy: "all", perSecond: 2 } });
    expect(now.retry).toEqual({ ...before.retry, attempts: 5 });
    expect(now.misfire).toEqual({ ...before.misfire, perSecond: 2 });
    expect(edited(now, { misfire: "skip" }).misfire).toMatchObject({ policy: "skip", cap: 7, afterMs: 60_000 });
  });

  it("is checked as a definition is", () => {
    expect(() => edited(code(), { priority: 10 })).toThrow(expect.objectContaining({ code: "TASK_INVALID" }));
    expect(() => edited(code(), { schedule: { type: "never" } as never })).toThrow(
      expect.objectContaining({ code: "SCHEDULE_INVALID" }),
    );
    expect(() => edited(code(), { nope: 1 } as never)).toThrow(expect.objectContaining({ code: "TASK_INVALID" }));
  });

  it("calls parts as options do, or by their own names", () => {
    expect(["timeout", "timeoutMs", "grace", "nope", "constructor"].map(partCalled)).toEqual([
      "timeoutMs",
      "timeoutMs",
      "graceMs",
      undefined,
      undefined,
    ]);
  });
});
