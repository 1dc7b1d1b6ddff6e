import { describe, expect, it } from "vitest";
import { every } from "../schedule/schedule.ts";
import { defineTask, definitionText, type TaskOptions } from "./task.ts";

const invalid = (part: string) =>
  expect.objectContaining({
    code: "TASK_INVALID",
    message: expect.stringContaining(part),
    hint: expect.stringMatching(/\S/),
  });

describe("a task's definition", () => {
  it("is complete, whatever options are omitted", () => {
    expect(defineTask("t")).toEqual({
      name: "t",
      description: "",
      group: "default",
      schedule: { type: "manual" },
      slotPayload: null,
      priority: 5,
      timeoutMs: null,
      retry: { attempts: 1, backoff: "exponential", delayMs: 1_000, maxDelayMs: 3_600_000, jitter: 0.2 },
      overlap: { policy: "allow", limit: null },
      misfire: { policy: "fire_once", afterMs: 10_000, cap: 100, perSecond: null },
      onWorkerLost: "retry",
      graceMs: 1_000,
      command: null,
    });
  });

  it("accepts durations, numbers in place of policies and policies in place of numbers", () => {
    const task = defineTask("t", {
      timeout: "2h",
      grace: 0,
      retry: { attempts: 5, backoff: "fixed", delay: "2h", jitter: 0 },
      misfire: { policy: "all", after: "1m", cap: 3, perSecond: 10 },
      overlap: { allow: 4 },
      slotPayload: { at: new Date(0) },
    });
    expect(task).toMatchObject({
      timeoutMs: 7_200_000,
      graceMs: 0,
      retry: { attempts: 5, backoff: "fixed", delayMs: 7_200_000, maxDelayMs: 7_200_000, jitter: 0 },
      misfire: { policy: "all", afterMs: 60_000, cap: 3, perSecond: 10 },
      overlap: { policy: "queue", limit: 4 },
      slotPayload: { at: "1970-01-01T00:00:00.000Z" },
    });
    expect(defineTask("t", { retry: 3 }).retry.attempts).toBe(3);
    for (const overlap of ["queue", "skip", "replace"] as const)
      expect(defineTask("t", { overlap }).overlap).toEqual({ policy: overlap, limit: 1 });
  });

  it.each(["", " a", ".a", "-a", "a b", "a\n", "a\0", "a;b", "x".repeat(201), 7, null])(
    "refuses the name %j",
    (name) => {
      expect(() => defineTask(name as string)).toThrow(invalid("name"));
    },
  );

  it.each(["a", "7", "übung", "结算", "a.b_c:d/e@f-g", "x".repeat(200)])("accepts the name %j", (name) => {
    expect(defineTask(name).name).toBe(name);
  });

  it.each<[string, object]>([
    ["priority", { priority: 10 }],
    ["priority", { priority: 1.5 }],
    ["retry.attempts", { retry: 0 }],
    ["retry.jitter", { retry: { attempts: 2, jitter: 1.1 } }],
    ["retry.jitter", { retry: { attempts: 2, jitter: Number.NaN } }],
    ["retry.backoff", { retry: { attempts: 2, backoff: "linear" } }],
    ["retry.delay", { retry: { attempts: 2, delay: "367d" } }],
    ["retry.maxDelay", { retry: { attempts: 2, maxDelay: "100000000d" } }],
    ["overlap", { overlap: "forbid" }],
    ["overlap.allow", { overlap: { allow: 0 } }],
    ["misfire", { misfire: "twice" }],
    ["misfire.cap", { misfire: { policy: "all", cap: 0 } }],
    ["misfire.within", { misfire: { policy: "all", within: "10s" } }],
    ["misfire.perSecond", { misfire: { policy: "all", perSecond: 0 } }],
    ["onWorkerLost", { onWorkerLost: "ignore" }],
    ["history", { history: "none" }],
    ["description", { description: 7 }],
    ["group", { group: "no spaces" }],
    ["retries", { retries: 3 }],
    ["argv", { command: { argv: [] } }],
    ["argv", { command: { argv: [""] } }],
    ["argv", { command: { argv: ["a\0b"] } }],
    ["argv", { command: { argv: "ls" } }],
    ["shell", { command: { argv: ["ls"], shell: true } }],
    ["env", { command: { argv: ["ls"], env: { A: 1 } } }],
    ["cwd", { command: { argv: ["ls"], cwd: 1 } }],
  ])("refuses a wrong %s: %j", (part, options) => {
    expect(() => defineTask("t", options as TaskOptions)).toThrow(invalid(part));
  });

  it("refuses wrong durations, payloads and schedules with their own error codes", () => {
    const code = (options: object) => {
      try {
        defineTask("t", options);
        return "none";
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    expect(code({ timeout: "soon" })).toBe("DURATION_INVALID");
    expect(code({ timeout: 0 })).toBe("DURATION_INVALID");
    expect(code({ misfire: { policy: "skip", after: "10ms" } })).toBe("DURATION_INVALID");
    expect(code({ retry: { attempts: 2, delayMs: 5 } })).toBe("TASK_INVALID");
    expect(code({ misfire: { policy: "skip", most: 5 } })).toBe("TASK_INVALID");
    expect(code({ overlap: { allow: 2, wait: 5 } })).toBe("TASK_INVALID");
    expect(code({ slotPayload: 1n })).toBe("PAYLOAD_NOT_JSON");
    expect(code({ schedule: { type: "sometimes" } })).toBe("SCHEDULE_INVALID");
  });

  it("shares no objects with the caller's options", () => {
    const argv = ["ls"];
    const task = defineTask("t", { command: { argv } });
    argv.push("-l");
    expect(task.command).toEqual({ argv: ["ls"] });
  });

  it("has one text, whatever the order of its keys", () => {
    const task = defineTask("t", { schedule: every("1m"), slotPayload: { b: [{ d: 1, c: 2 }], a: 1 } });
    const shuffled = JSON.parse(JSON.stringify(Object.fromEntries(Object.entries(task).toReversed())));
    shuffled.slotPayload = { a: 1, b: [{ c: 2, d: 1 }] };
    expect(definitionText(shuffled)).toBe(definitionText(task));
    expect(definitionText({ ...task, priority: 6 })).not.toBe(definitionText(task));
  });
});
