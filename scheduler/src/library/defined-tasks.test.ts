import { expect, it } from "vitest";
import { z } from "zod";
import { CarillonError } from "../base/errors.ts";
import { silentLog } from "../base/log.ts";
import { every } from "../schedule/schedule.ts";
import { Definitions } from "../store/definitions.ts";
import { releaseOf } from "../task/release.ts";
import { defineTask, type TaskDefinition, type TaskOptions } from "../task/task.ts";
import type { TaskRecord } from "../task/task-record.ts";
import type { BroughtTask, TaskStore } from "../task/task-store.ts";
import { DefinedTasks, type Registry } from "./defined-tasks.ts";

/** A fake store that records its calls and responds when the test wants. */
function stage() {
  const asked: string[] = [];
  const answers: ((failed?: Error) => void)[] = [];
  const answered = () =>
    new Promise<void>((resolve, reject) => answers.push((failed) => (failed ? reject(failed) : resolve())));
  const tasks = {
    byName: async (name: string) => {
      asked.push(`byName ${name}`);
      await answered();
      return { taskId: 7, name } as TaskRecord;
    },
    saveAll: async (definitions: readonly TaskDefinition[]) => {
      asked.push(`saveAll ${definitions.map(({ name }) => name)}`);
      await answered();
      return definitions.map((definition) => ({ taskId: 8, name: definition.name, definition }) as TaskRecord);
    },
  } as unknown as TaskStore;

  const by = { release: releaseOf("1", []), graceMs: 60_000 };
  const registry: Registry = {
    tasks,
    definitions: new Definitions(tasks),
    author: "test",
    by,
    nowMs: 0,
    log: silentLog,
  };
  return { asked, answers, registry };
}

it.each([
  ["of a task that another process defines", "byName far"],
  ["of a task that this process defines", "saveAll far"],
])("10,000 concurrent callers that need the number %s cause one store query", async (_, question) => {
  const { asked, answers, registry } = stage();
  const defined = new DefinedTasks();
  if (question.startsWith("saveAll"))
    defined.add({ definition: defineTask("far"), schema: undefined, handler: async () => undefined });
  const all = Promise.all(Array.from({ length: 10_000 }, () => defined.taskId("far", registry)));
  expect(answers).toHaveLength(1);
  answers[0]?.();
  expect(new Set(await all).size).toBe(1);
  await defined.taskId("far", registry);
  expect(asked).toEqual([question]);
});

it("a failure goes to all callers that share the query, and the next call queries again", async () => {
  const { asked, answers, registry } = stage();
  const defined = new DefinedTasks();
  const all = Promise.allSettled([defined.taskId("far", registry), defined.taskId("far", registry)]);
  answers[0]?.(new CarillonError("TASK_UNKNOWN", "there is no such task"));
  expect((await all).map((one) => one.status === "rejected" && one.reason.code)).toEqual([
    "TASK_UNKNOWN",
    "TASK_UNKNOWN",
  ]);
  const again = defined.taskId("far", registry);
  answers[1]?.();
  expect(await again).toBe(7);
  expect(asked).toEqual(["byName far", "byName far"]);
});

it("a payload that the schema would refuse in every slot, or in every chained run, is found at definition", async () => {
  const check = (options: TaskOptions) => {
    const defined = new DefinedTasks();
    defined.add({
      definition: defineTask("t", options),
      schema: z.string().nullable(),
      handler: async () => undefined,
    });
    return defined.checkSlotPayloads();
  };
  for (const options of [{ schedule: every("1m") }, { after: "extract" }]) {
    await expect(check({ ...options, slotPayload: 7 })).rejects.toMatchObject({ code: "PAYLOAD_INVALID" });
    await check({ ...options, slotPayload: "eu" });
    await check(options);
  }
  await check({ slotPayload: 7 });
});

it("warns once which tasks another release defines", async () => {
  const lines: [object, string][] = [];
  const warn = (fields: object, message: string) => void lines.push([fields, message]);
  const { registry } = stage();
  const { by } = registry;
  const saveAll = async (definitions: readonly TaskDefinition[]) =>
    definitions.map((definition, taskId) => {
      const { name } = definition;
      return { taskId, name, definition, ...(name === "a" && { isOthers: true }) } as BroughtTask;
    });
  const tasks = { ...registry.tasks, saveAll };
  const defined = new DefinedTasks();
  for (const name of ["a", "b"])
    defined.add({ definition: defineTask(name), schema: undefined, handler: async () => undefined });
  for (let start = 0; start < 2; start++)
    await defined.registerAll({ ...registry, tasks, log: { ...silentLog, warn } });
  expect(lines).toEqual([
    [{ tasks: ["a"], count: 1, release: by.release.name }, expect.stringContaining("another release defines")],
  ]);
});
