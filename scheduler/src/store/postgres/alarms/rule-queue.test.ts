import { expect, test } from "vitest";
import { CarillonError } from "../../../base/errors.ts";
import { silentLog } from "../../../base/log.ts";
import type { Database } from "../database.ts";
import { QueueCounter } from "./rule-queue.ts";

/** Returns a counter on a store whose answers take `tookMs`, and the rules for which it was asked, by the first value of the scope. */
function stage(tookMs: number) {
  let mono = 0;
  const asked: unknown[] = [];
  const warned: object[] = [];
  const failing = new Map<unknown, Error>();
  const database = {
    schema: "s",
    clock: { monotonic: () => mono },
    query: async (_name: string, _text: string, [rule]: unknown[]) => {
      asked.push(rule);
      mono += tookMs;
      const error = failing.get(rule);
      if (error) throw error;
      return [];
    },
    log: { ...silentLog, warn: (fields: object) => void warned.push(fields) },
  };
  const counter = new QueueCounter(database as unknown as Database);
  const rule = (name: string, version = 1) => ({ name, version, content: { kind: "queue", more: 1 } as const });
  const count = (rules: ReturnType<typeof rule>[], now: number) =>
    counter.count(rules, ({ name }) => ({ scope: "true", values: [name, null, null, null] }), now);
  return { asked, failing, warned, rule, count };
}

test("after a count, the queues of a rule are not counted for fifty times as long as it took", async () => {
  const { asked, rule, count } = stage(100);
  for (const now of [0, 4_999]) await count([rule("a")], now);
  expect(asked).toEqual(["a"]);
  const counts = await count([rule("a"), rule("b")], 5_000);
  expect(asked).toEqual(["a", "a", "b"]);
  expect(counts.get("a")).toMatchObject({ atMs: 5_000 });
  await count([rule("a", 2), rule("b")], 5_001);
  expect(asked, "a rule that was changed is counted at once").toEqual(["a", "a", "b", "a"]);
});

test("a count that fails keeps the rule's last count, is not repeated at once, and the other rules are counted", async () => {
  const { asked, failing, warned, rule, count } = stage(100);
  await count([rule("a")], 0);
  failing.set("a", new Error("canceling statement due to statement timeout"));
  const counts = await count([rule("a"), rule("b")], 5_000);
  expect([counts.get("a")?.atMs, counts.get("b")?.atMs]).toEqual([0, 5_000]);
  expect(warned).toEqual([{ rule: "a", error: "canceling statement due to statement timeout" }]);
  await count([rule("a"), rule("b")], 9_999);
  expect(asked).toEqual(["a", "a", "b"]);
});

test("a store that is away fails all counts at once", async () => {
  const { asked, failing, rule, count } = stage(100);
  failing.set("a", new CarillonError("STORE_UNREACHABLE", "away"));
  await expect(count([rule("a"), rule("b")], 0)).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
  expect(asked).toEqual(["a"]);
});
