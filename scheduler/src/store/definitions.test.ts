import { describe, expect, it } from "vitest";
import { every } from "../schedule/schedule.ts";
import { defineTask } from "../task/task.ts";
import type { TaskRecord } from "../task/task-record.ts";
import type { TaskStore } from "../task/task-store.ts";
import { Definitions } from "./definitions.ts";

function stored() {
  const records = new Map<number, TaskRecord>();
  const asked: number[][] = [];
  const put = (taskId: number, version: number) => {
    const definition = defineTask(`t${taskId}`, { schedule: every(version * 1_000) });
    records.set(taskId, {
      taskId,
      name: definition.name,
      version,
      definition,
      groupId: 1,
      paused: null,
      changedMs: 0,
      nextSlotMs: null,
    });
  };
  const byIds = async (taskIds: number[]) => {
    asked.push(taskIds);
    return taskIds.flatMap((taskId) => records.get(taskId) ?? []);
  };
  const tasks = { byIds } as unknown as TaskStore;
  return { put, asked, records, tasks, definitions: new Definitions(tasks) };
}

describe("definitions", () => {
  it("of more tasks than fit are the most recently used ones; older ones are read again", async () => {
    const { put, asked, tasks } = stored();
    const definitions = new Definitions(tasks, 20);
    for (let taskId = 1; taskId <= 100; taskId++) put(taskId, 1);
    for (let taskId = 1; taskId <= 100; taskId++) {
      await definitions.ensure([
        { taskId, version: 1 },
        { taskId: 1, version: 1 },
      ]);
      expect(definitions.get(taskId)?.definition.name).toBe(`t${taskId}`);
      expect(definitions.size).toBeLessThanOrEqual(20);
    }
    expect(asked, "the first was asked for all the time").toHaveLength(100);
    await definitions.ensure([{ taskId: 99, version: 1 }]);
    expect(asked).toHaveLength(100);
    await definitions.ensure([{ taskId: 50, version: 1 }]);
    expect(asked.slice(100)).toEqual([[50]]);
  });

  it("are read once, all missing ones in one query, and again only for a newer version", async () => {
    const { put, asked, definitions } = stored();
    put(1, 1);
    put(2, 1);
    expect(definitions.get(1)).toBeUndefined();
    const wanted = [1, 2, 1].map((taskId) => ({ taskId, version: 1 }));
    await definitions.ensure(wanted);
    await definitions.ensure(wanted);
    expect(asked).toEqual([[1, 2]]);
    put(1, 3);
    await definitions.ensure([
      { taskId: 1, version: 2 },
      { taskId: 2, version: 1 },
    ]);
    expect(asked).toEqual([[1, 2], [1]]);
    expect(definitions.get(1)).toMatchObject({ version: 3, definition: { schedule: { everyMs: 3_000 } } });
    expect(definitions.get(1)?.schedule.next(0)).toBe(3_000);
  });

  it("never go back to an older version", async () => {
    const { put, records, definitions } = stored();
    put(1, 2);
    const old = { ...(records.get(1) as TaskRecord), version: 1 };
    definitions.remember(records.get(1) as TaskRecord);
    expect(definitions.remember(old).version).toBe(2);
    expect(definitions.get(1)?.version).toBe(2);
  });

  it("leave out tasks that the store does not have", async () => {
    const { definitions } = stored();
    await definitions.ensure([{ taskId: 9, version: 1 }]);
    expect(definitions.get(9)).toBeUndefined();
  });
});
