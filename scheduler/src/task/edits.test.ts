import { describe, expect, it } from "vitest";
import { every } from "../schedule/schedule.ts";
import { edited, editedParts, keepEdits, partCalled, reverted } from "./edits.ts";
import { optionRows } from "./options.ts";
import { defineTask, type TaskOptions } from "./task.ts";
import { readWritten } from "./written.ts";

const code = (options: TaskOptions = {}) => defineTask("settle", { schedule: every("1m"), priority: 5, ...options });

/** @param written the option's value as it is written in a task file */
const optionOf = (option: string, written: unknown): TaskOptions =>
  option === "schedule" ? { schedule: readWritten("t", { schedule: written }).schedule } : { [option]: written };

describe("a manual edit", () => {
  it("keeps the code's value beneath it, and survives a restart of the code", () => {
    const now = edited(code(), { priority: 7, timeout: "5m" });
    expect(now).toEqual({ ...code(), priority: 7, timeoutMs: 300_000, asDefined: { priority: 5, timeoutMs: null } });
    expect(keepEdits(code(), now)).toEqual(now);
  });

  it("lets the code change every other part, and the value beneath", () => {
    const now = edited(code(), { priority: 7 });
    const next = keepEdits(code({ priority: 1, schedule: every("2m") }), now);
    expect(next).toEqual({ ...code({ schedule: every("2m") }), priority: 7, asDefined: { priority: 1 } });
    expect(reverted(next, ["priority"])).toEqual(code({ priority: 1, schedule: every("2m") }));
  });

  it("disappears if both values agree, whichever of them changed", () => {
    const now = edited(code(), { priority: 7 });
    expect(keepEdits(code({ priority: 7 }), now)).toEqual(code({ priority: 7 }));
    expect(edited(now, { priority: 5 })).toEqual(code());
    expect(edited(code(), { priority: 5 })).toEqual(code());
  });

  it("of an edited part still keeps the code's original value", () => {
    const twice = edited(edited(code(), { priority: 7 }), { priority: 8, grace: "2s" });
    expect(twice.asDefined).toEqual({ priority: 5, graceMs: 1_000 });
    expect(editedParts(reverted(twice, ["graceMs"]))).toEqual(["priority"]);
    expect(reverted(twice, editedParts(twice))).toEqual(code());
    expect(reverted(code(), [])).toEqual(code());
  });

  it("changes only the named fields of a policy", () => {
    const before = code({
      retry: { attempts: 3, delay: "2s", jitter: 0 },
      misfire: { policy: "all", cap: 7, after: "1m" },
    });
    const now = edited(before, { retry: 5, misfire: { policy: "all", perSecond: 2 } });
    expect(now.retry).toEqual({ ...before.retry, attempts: 5 });
    expect(now.misfire).toEqual({ ...before.misfire, perSecond: 2 });
    expect(edited(now, { misfire: "skip" }).misfire).toMatchObject({ policy: "skip", cap: 7, afterMs: 60_000 });
  });

  it("is validated like a definition", () => {
    expect(() => edited(code(), { priority: 10 })).toThrow(expect.objectContaining({ code: "TASK_INVALID" }));
    expect(() => edited(code(), { schedule: { type: "never" } as never })).toThrow(
      expect.objectContaining({ code: "SCHEDULE_INVALID" }),
    );
    expect(() => edited(code(), { nope: 1 } as never)).toThrow(expect.objectContaining({ code: "TASK_INVALID" }));
  });

  it("of any two options is refused exactly if a definition with both is refused", () => {
    const examples = optionRows.flatMap(([option, { example }]) =>
      option === "of" ? [] : [[option, optionOf(option, example)] as const],
    );
    const more: TaskOptions[] = [
      ...(["queue", "skip", "replace", { allow: 2 }, { queue: 1 }] as const).map((overlap) => ({ overlap })),
      ...(["broadcast", { shards: 2 }, "sticky"] as const).map((route) => ({ route })),
      { limit: { perWorker: 1 } },
      { rate: { limit: 1, per: "1s", key: true } },
      { schedule: every("1m") },
      { schedule: every("1m", { mode: "delay" }) },
      { misfire: { policy: "fire_once", waiting: true } },
    ];
    const samples = [...examples, ...more.map((one) => [Object.keys(one)[0] as string, one] as const)];
    const refusal = (make: () => unknown) => {
      try {
        make();
        return null;
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    let refused = 0;
    for (const [a, first] of samples) {
      expect([first, refusal(() => defineTask("t", first))]).toEqual([first, null]);
      for (const [b, second] of samples) {
        if (a === b) continue;
        const together = refusal(() => defineTask("t", { ...first, ...second }));
        const asEdit = refusal(() => edited(defineTask("t", first), second));
        expect([first, second, asEdit]).toEqual([first, second, together]);
        if (together !== null) refused++;
      }
    }
    expect(refused).toBeGreaterThan(30);
  });

  it("accepts the names of options and the names of parts", () => {
    expect(["timeout", "timeoutMs", "grace", "nope", "constructor"].map(partCalled)).toEqual([
      "timeoutMs",
      "timeoutMs",
      "graceMs",
      undefined,
      undefined,
    ]);
  });
});
