import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import type { TurnRequest } from "../../src/run/claim-store.ts";
import { defineTask } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { asCode, change, openStage, type Stage, until } from "../support/store-stage.ts";

describe.each(everyPostgres())("fair claims on $title", (server) => {
  let stage: Stage;
  let session: number;
  let tower: Carillon | undefined;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterAll(async () => {
    await tower?.stop();
    await stage.close();
  });

  /** Inserts ready runs that were due before all runs that these tests enqueue. */
  const backlog = (task: TaskRecord, count: number, priority = 5) =>
    stage.sql.query(
      `insert into ${stage.schema}.run (id, due_ms, created_ms, task_id, group_id, version, state, priority, source)
       select nextval('${stage.schema}.run_id'), $1::bigint - 600000 + i, $1, $2, $3, 1, 2, $4, 2 from generate_series(1, $5::int) i`,
      [stage.nowMs, task.taskId, task.groupId, priority, count],
    );
  const turn = async (task: TaskRecord, request: Partial<TurnRequest> = {}) => {
    const { runs, lastTaskId } = await stage.store.claims.turn({
      sessionId: session,
      groupIds: [task.groupId],
      exceptTaskIds: [],
      untilMs: stage.nowMs,
      nowMs: stage.nowMs,
      limit: 100,
      leastPriority: 0,
      waitingTaskIds: [],
      each: 2,
      afterTaskId: 0,
      ...request,
    });
    return { taskIds: runs.map(({ taskId }) => taskId).sort((a, b) => a - b), lastTaskId };
  };

  it("take a few runs of each due task, whatever its age, but none of excepted tasks and other groups", async () => {
    const group = { group: "turns" };
    const [old, young, excepted] = [
      await stage.task("old", group),
      await stage.task("young", group),
      await stage.task("excepted", group),
    ];
    const foreign = await stage.task("foreign", { group: "another" });
    await backlog(old, 500);
    for (const task of [young, young, young, excepted, foreign]) await stage.enqueue(task);
    await stage.enqueue(young, { dueMs: stage.nowMs + 60_000 });
    expect(await turn(old, { exceptTaskIds: [excepted.taskId] })).toEqual({
      taskIds: [old.taskId, old.taskId, young.taskId, young.taskId],
      lastTaskId: 0,
    });
    expect((await turn(old, { exceptTaskIds: [old.taskId, excepted.taskId] })).taskIds, "the rest that is due").toEqual(
      [young.taskId],
    );
    expect((await turn(old, { sessionId: await ended() })).taskIds, "a session that ended").toEqual([]);
  });

  it("keep priorities strict", async () => {
    const group = { group: "strict" };
    const [high, low] = [await stage.task("high", group), await stage.task("low", group)];
    await backlog(high, 10, 7);
    await stage.enqueue(low);
    expect((await turn(low, { leastPriority: 7 })).taskIds).toEqual([high.taskId, high.taskId]);
    expect((await turn(low, { limit: 1 })).taskIds, "the highest first").toEqual([high.taskId]);
    expect((await turn(low)).taskIds).toEqual([high.taskId, high.taskId, low.taskId].sort((a, b) => a - b));
  });

  it("of a task already waiting at the worker take only higher priorities, and of other tasks also equal ones", async () => {
    const group = { group: "above" };
    const [both, other] = [await stage.task("both", group), await stage.task("other", group)];
    await backlog(both, 3, 4);
    await backlog(other, 3, 4);
    await backlog(both, 1, 8);
    const waiting = { leastPriority: 4, waitingTaskIds: [both.taskId] };
    expect((await turn(both, waiting)).taskIds.sort()).toEqual([both.taskId, other.taskId, other.taskId].sort());
    expect((await turn(both, waiting)).taskIds, "its own of the same priority have their turn here").toEqual([
      other.taskId,
    ]);
  });

  it("read a bounded number of tasks, and continue where they ended", async () => {
    const definitions = Array.from({ length: 205 }, (_, i) => defineTask(`many-${i}`, { group: "many" }));
    const tasks = await stage.store.tasks.saveAll(definitions, change(stage.nowMs), asCode);
    tasks.sort((a, b) => a.taskId - b.taskId);
    const [first] = tasks as [TaskRecord];
    await stage.store.runs.enqueue(
      tasks.map((task) => stage.write(task)),
      stage.nowMs,
    );
    const others = first.taskId - 1;
    const one = await turn(first, { limit: 500, afterTaskId: others });
    expect(one.taskIds).toHaveLength(200);
    expect(one.lastTaskId).toBe(one.taskIds.at(-1));
    const two = await turn(first, { limit: 500, afterTaskId: one.lastTaskId });
    expect(two).toEqual({ taskIds: tasks.slice(200).map(({ taskId }) => taskId), lastTaskId: 0 });
  });

  it("start a serial task ahead of 20,000 older runs of another task that fill every slot", async () => {
    /** For each run of the serial task, in order: how many runs of the other task had ended when it started. */
    const before: number[] = [];
    let ended = 0;
    const log = silentLog;
    const running = carillon({ store: server.url, schema: stage.schema, concurrency: 4, log, name: "worker-of-turns" });
    tower = running;
    const flood = running.task("flood", { group: "fair" }, async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      ended++;
    });
    const serial = running.task("serial", { group: "fair", overlap: "queue" }, () => void before.push(ended));
    await flood.enqueue(undefined);
    await backlog(await stage.store.tasks.byName("flood"), 20_000);
    await running.start();
    await until("every place is taken", () => ended > 100);
    for (let i = 0; i < 5; i++) {
      await serial.enqueue(undefined);
      await until("it runs", () => before.length > i);
    }
    const left = await stage.one(
      "select count(*) as runs from $s.run r join $s.task t on t.id = r.task_id where t.name = 'flood'",
    );
    expect(left.runs, "the backlog is still there").toBeGreaterThan(5_000);
    // If age alone decided, the runs of the serial task would start last. docs/tasks/limits.md says how late they may start.
    expect(before.toSorted((a, b) => a - b)).toEqual(before);
    expect(before.at(-1)).toBeLessThan(15_000);
  });

  it("other workers' free slots: less their claims, for tasks of both their groups and the requesting worker's", async () => {
    const groups = ["places", "aside"];
    const [task, aside, foreign, routed] = [
      await stage.task("placed", { group: "places" }),
      await stage.task("beside", { group: "aside" }),
      await stage.task("abroad", { group: "elsewhere" }),
      await stage.task("addressed", { group: "places", route: "least-loaded" }),
    ];
    const taskIds = [task, aside, foreign, routed].map(({ taskId }) => taskId);
    const open = async (node: string, served: string[], capacity: number | null) => {
      const identity = { node, role: "node", host: "", pid: 1, version: "", timeoutMs: 6_000 } as const;
      const opened = await stage.store.sessions.open({ ...identity, groups: served, capacity }, stage.nowMs);
      if ("taken" in opened) throw new Error(`${node} is taken`);
      return opened.sessionId;
    };
    const [full, two, old, none] = [
      await open("full", groups, 5),
      await open("two", ["places", "elsewhere"], 2),
      await open("old", groups, null),
      await open("none", groups, 0),
    ];
    const room = (sessionId = full) => stage.store.claims.roomElsewhere(sessionId, taskIds);
    const both = [task.taskId, aside.taskId];
    const [ofTwo, ofOld] = [
      { places: 2, taskIds: [task.taskId] },
      { places: 1, taskIds: both },
    ];
    expect(await room()).toEqual([ofTwo, ofOld]);
    expect(await room(old)).toEqual([{ places: 5, taskIds: both }, ofTwo]);
    await stage.enqueue(task, { dueMs: stage.nowMs + 900 });
    const request = { groupIds: [task.groupId], exceptTaskIds: [], untilMs: stage.nowMs + 1_000, nowMs: stage.nowMs };
    await stage.store.claims.claim({ ...request, sessionId: two, limit: 5 });
    expect(await room(), "one claimed ahead has its place").toEqual([{ ...ofTwo, places: 1 }, ofOld]);
    await stage.store.sessions.end(old, null, stage.nowMs, "test");
    await stage.store.routes.drain(two);
    expect(await room()).toEqual([]);
    for (const one of [full, two, none]) await stage.store.sessions.end(one, null, stage.nowMs, "test");
  });

  async function ended(): Promise<number> {
    const gone = await stage.session("worker");
    await stage.store.sessions.end(gone, null, stage.nowMs, "test");
    return gone;
  }
});
