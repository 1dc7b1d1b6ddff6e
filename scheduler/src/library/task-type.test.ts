import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import type { Carillon } from "./carillon.ts";
import type { RunHandle } from "./run-handle.ts";
import type { Task } from "./task-handle.ts";
import { taskType } from "./task-type.ts";

const settle = taskType("settle", {
  payload: z.object({ invoice: z.string(), at: z.coerce.date() }),
  result: z.object({ paid: z.date() }),
});
const plain = taskType<{ n: number }, Date>("plain");

describe("a task's type", () => {
  it("has a valid task name, and checks payloads with its schema", () => {
    expect(settle.name).toBe("settle");
    expect(plain.payload).toBeUndefined();
    expect(() => taskType("no name!")).toThrow(expect.objectContaining({ code: "TASK_INVALID" }));
  });

  it("types handlers and producers", () => {
    type Settled = { paid: string };
    // This function is compiled but never called, because it would open a store.
    const _uses = async (tower: Carillon) => {
      const task = tower.task(settle, {}, (_run, { invoice, at }) => {
        expectTypeOf(invoice).toEqualTypeOf<string>();
        expectTypeOf(at).toEqualTypeOf<Date>();
        return { paid: at };
      });
      expectTypeOf(task).toEqualTypeOf<Task<{ invoice: string; at: unknown }, Settled>>();
      // @ts-expect-error: the handler returns something else than the type says
      tower.task(settle, {}, () => 7);
      const producer = tower.producer(settle);
      expectTypeOf(await producer.enqueue({ invoice: "7", at: "2026-01-01" })).toEqualTypeOf<RunHandle<Settled>>();
      // @ts-expect-error: a payload is needed
      await producer.enqueue();
      // @ts-expect-error: an invoice is a text
      await producer.enqueue({ invoice: 7, at: "2026-01-01" });
      expectTypeOf(await (await tower.producer(plain).run({ n: 1 })).result()).toEqualTypeOf<string>();
      // While the interface TaskRegistry is empty, any name is accepted.
      expectTypeOf(await tower.enqueue("any", { n: 1 }, { in: "1s" })).toEqualTypeOf<RunHandle<unknown>>();
    };
    expect(_uses).toBeTypeOf("function");
  });
});
