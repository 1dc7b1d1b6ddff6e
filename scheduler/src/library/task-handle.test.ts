import { expect, expectTypeOf, it } from "vitest";
import type { EnqueueOptions } from "../run/enqueue-options.ts";
import type { ScheduleSpec } from "../schedule/schedule.ts";
import { handleOf, type Task } from "./task-handle.ts";

it("a payload is needed where the task needs one, and may be left out elsewhere", () => {
  type Arguments<Input> = [Parameters<Task<Input>["run"]>, Parameters<Task<Input>["enqueue"]>];
  type Optional<Input> = [[payload?: Input], [payload?: Input, options?: EnqueueOptions]];
  type Needed<Input> = [[payload: Input], [payload: Input, options?: EnqueueOptions]];

  expectTypeOf<Arguments<unknown>>().toEqualTypeOf<Optional<unknown>>();
  expectTypeOf<Arguments<undefined>>().toEqualTypeOf<Optional<undefined>>();
  expectTypeOf<Arguments<string | undefined>>().toEqualTypeOf<Optional<string | undefined>>();
  expectTypeOf<Arguments<string>>().toEqualTypeOf<Needed<string>>();
  expectTypeOf<Arguments<string | null>>().toEqualTypeOf<Needed<string | null>>();

  type Scheduled<Input> = Parameters<Task<Input>["schedule"]>;
  expectTypeOf<["a", ScheduleSpec]>().toExtend<Scheduled<unknown>>();
  expectTypeOf<["a", ScheduleSpec]>().not.toExtend<Scheduled<string>>();
  expectTypeOf<["a", ScheduleSpec, { payload: string }]>().toExtend<Scheduled<string>>();
});

it("one that is left out is none", async () => {
  const asked: unknown[][] = [];
  const doing = {
    enqueue: async (...given: unknown[]) => ({ runId: asked.push(given), created: true }),
    run: async (...given: unknown[]) => ({ runId: asked.push(given), created: true }),
    pause: async () => undefined,
    resume: async () => undefined,
    schedules: {} as never,
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
