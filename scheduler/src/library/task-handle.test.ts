import type { StandardSchemaV1 } from "@standard-schema/spec";
import { expect, expectTypeOf, it } from "vitest";
import type { EnqueueOptions } from "../run/enqueue-options.ts";
import type { Continuation } from "../run/flow.ts";
import type { Run } from "../run/handler.ts";
import type { BatchRun } from "../run/handling/batch.ts";
import type { RetryIn, Snooze } from "../run/handling/postponed.ts";
import type { ScheduleSpec } from "../schedule/schedule.ts";
import type { Carillon } from "./carillon.ts";
import { EnqueuedRun, type JsonOf, type ResultOf, type RunHandle } from "./run-handle.ts";
import { handleOf, type Task } from "./task-handle.ts";
import { taskType } from "./task-type.ts";

const handleTo = (runId: number) => new EnqueuedRun({ runId, created: true }, {} as never);

it("a payload is required if the task requires one, and optional otherwise", () => {
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

it("an omitted payload is no payload", async () => {
  const asked: unknown[][] = [];
  const doing = {
    enqueue: async (...given: unknown[]) => handleTo(asked.push(given)),
    enqueueMany: async () => [],
    run: async (...given: unknown[]) => handleTo(asked.push(given)),
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

it("a result has the type of the handler's return value after JSON", () => {
  type Of<Returned> = ResultOf<Returned>;
  expectTypeOf<Of<number>>().toEqualTypeOf<number>();
  expectTypeOf<Of<void>>().toEqualTypeOf<null>();
  expectTypeOf<Of<unknown>>().toEqualTypeOf<unknown>();
  expectTypeOf<Of<string | Continuation>>().toEqualTypeOf<string>();
  expectTypeOf<Of<string | RetryIn | Snooze>>().toEqualTypeOf<string>();
  expectTypeOf<Of<{ forMs: number }>>().toEqualTypeOf<{ forMs: number }>();
  expectTypeOf<Of<{ at: Date; n?: number; f: () => void }>>().toEqualTypeOf<{ at: string; n?: number }>();
  expectTypeOf<Of<readonly { at: Date }[]>>().toEqualTypeOf<{ at: string }[]>();
  expectTypeOf<JsonOf<"a" | 1 | null>>().toEqualTypeOf<"a" | 1 | null>();

  // This function is compiled but never called, because it would open a store.
  const types = (tower: Carillon, schema: StandardSchemaV1<string, number>) => {
    const sum = tower.task("sum", {}, async (_run, numbers: number[]) => ({ sum: numbers.length }));
    expectTypeOf(sum).toEqualTypeOf<Task<number[], { sum: number }>>();
    expectTypeOf(sum.enqueue([1])).resolves.toEqualTypeOf<RunHandle<{ sum: number }>>();
    expectTypeOf(tower.task("parse", { payload: schema }, (_run, n) => ({ n }))).toEqualTypeOf<
      Task<string, { n: number }>
    >();
    const batch = { size: 2 };
    expectTypeOf(
      tower.task<string>("many", { batch }, (runs) => {
        expectTypeOf(runs).toEqualTypeOf<BatchRun<string>[]>();
      }),
    ).toEqualTypeOf<Task<string>>();
    const parsed = tower.task("parsed", { payload: schema, batch }, (runs) => {
      expectTypeOf(runs).toEqualTypeOf<BatchRun<number>[]>();
    });
    expectTypeOf(parsed).toEqualTypeOf<Task<string>>();
    const typed = taskType<{ id: string }, { n: number }>("typed");
    tower.task(typed, { batch }, (runs) => {
      for (const run of runs) run.succeed({ n: run.payload.id.length });
      // @ts-expect-error: the result is another type
      runs[0]?.succeed({ n: "1" });
    });
    // @ts-expect-error: a handler of single runs
    tower.task("single", { batch }, (run: Run, n: number) => n + run.attempt);
    expectTypeOf(tower.task<{ id: string }>("plain", {}, () => 1)).toEqualTypeOf<Task<{ id: string }, unknown>>();
    expectTypeOf(
      sum.enqueueMany([[1], [2]], (numbers, index) => ({ key: `${numbers.length} ${index}` })),
    ).resolves.toEqualTypeOf<RunHandle<{ sum: number }>[]>();
    expectTypeOf(tower.enqueue("sum")).resolves.toEqualTypeOf<RunHandle>();
  };
  expect(types).toBeTypeOf("function");
});
