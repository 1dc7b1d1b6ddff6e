import { expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { carillon } from "./carillon.ts";
import type { EnqueueOptions } from "./enqueue-options.ts";
import { handleOf, type Task } from "./task-handle.ts";

it("a payload is needed where the task needs one, and may be left out elsewhere", () => {
  const tower = carillon({ handleSignals: false });
  const handler = () => undefined;
  type Arguments<Of extends Task<never>> = [Parameters<Of["run"]>, Parameters<Of["enqueue"]>];
  type Optional<Payload> = [[payload?: Payload], [payload?: Payload, options?: EnqueueOptions]];
  type Needed<Payload> = [[payload: Payload], [payload: Payload, options?: EnqueueOptions]];

  const plain = tower.task("plain", {}, handler);
  const command = tower.task("command", { command: { argv: ["true"] } });
  const typed = tower.task("typed", {}, (_run, _payload: number) => undefined);
  const maybe = tower.task<string | undefined>("maybe", {}, handler);
  const checked = tower.task("checked", { payload: z.object({ ledger: z.string() }) }, handler);
  const defaulted = tower.task("defaulted", { payload: z.string().default("eu") }, handler);
  expectTypeOf<Arguments<typeof plain>>().toEqualTypeOf<Optional<unknown>>();
  expectTypeOf<Arguments<typeof command>>().toEqualTypeOf<Optional<undefined>>();
  expectTypeOf<Arguments<typeof typed>>().toEqualTypeOf<Needed<number>>();
  expectTypeOf<Arguments<typeof maybe>>().toEqualTypeOf<Optional<string | undefined>>();
  expectTypeOf<Arguments<typeof checked>>().toEqualTypeOf<Needed<{ ledger: string }>>();
  expectTypeOf<Arguments<typeof defaulted>>().toEqualTypeOf<Optional<string | undefined>>();
});

it("one that is left out is none", async () => {
  const asked: unknown[][] = [];
  const doing = {
    enqueue: async (...given: unknown[]) => ({ runId: asked.push(given), created: true }),
    run: async (...given: unknown[]) => ({ runId: asked.push(given), created: true }),
    pause: async () => undefined,
    resume: async () => undefined,
  };
  const task = handleOf(doing, "t", () => []);
  await task.run();
  await task.enqueue();
  await task.enqueue(undefined, { key: "a" });
  expect(asked).toEqual([
    ["t", undefined],
    ["t", undefined, undefined],
    ["t", undefined, { key: "a" }],
  ]);
});
