import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Carillon, carillon } from "../../src/index.ts";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import { inspectPostgres } from "../../src/store/postgres/runs/inspect.ts";
import type { Store } from "../../src/store/store.ts";
import { allGroups } from "../../src/task/group-store.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement, succeededVerdict, until } from "../support/store-stage.ts";

describe.each(everyPostgres())("group limits on $title", (server) => {
  let stage: Stage;
  let session: number;
  const towers: Carillon[] = [];
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterEach(async () => void (await Promise.all(towers.splice(0).map((tower) => tower.stop()))));
  afterAll(() => stage.close());

  let turns = 0;
  let made = 0;
  /** Creates tasks in a new group with the given limit. */
  async function group(limit: number | null, ...tasks: TaskOptions[]): Promise<{ name: string; tasks: TaskRecord[] }> {
    const name = `g${++made}`;
    const records: TaskRecord[] = [];
    for (const [at, options] of tasks.entries())
      records.push(await stage.task(`${name}-${at}`, { group: name, grace: 0, ...options }));
    if (limit !== null) await stage.store.groups.limit(name, limit, change(stage.nowMs));
    return { name, tasks: records };
  }
  const many = (task: TaskRecord, count: number, write: Parameters<Stage["write"]>[1] = {}) =>
    stage.store.runs.enqueue(
      Array.from({ length: count }, () => stage.write(task, write)),
      stage.nowMs,
    );
  const ask = async (task: TaskRecord, more: object = {}, store: Store = stage.store) => {
    const { runs, nextDue } = await store.claims.claim({
      sessionId: session,
      groupIds: [task.groupId],
      exceptTaskIds: [],
      untilMs: stage.nowMs,
      limit: 100,
      nowMs: stage.nowMs,
      ...more,
    });
    return { runs, nextDueMs: await nextDue() };
  };
  const claim = async (task: TaskRecord, more?: object, store?: Store) => (await ask(task, more, store)).runs;
  const end = (runs: ClaimedRun[], verdict: Verdict = succeededVerdict, of = session, store = stage.store) =>
    store.claims.settle(
      of,
      runs.map((run) => settlement(run, verdict, stage.nowMs)),
      stage.nowMs,
    );

  it("at most n runs of a group in a burst: many workers, tasks with and without routes and own limits", async () => {
    const { tasks } = await group(4, {}, { overlap: { allow: 3 } }, { limit: { perKey: 1 } }, { route: "random" });
    const stores = [stage.store, await stage.another(), await stage.another()];
    const sessions = await Promise.all(stores.map(() => stage.session("worker")));
    for (const task of tasks) await many(task, 20);
    const total = 20 * tasks.length;
    let [ended, worst, looks] = [0, 0, 0];
    const watch = (async () => {
      while (ended < total) {
        const { n } = await stage.one("select count(*)::int as n from $s.run where state = 3 and task_id = any($1)", [
          tasks.map(({ taskId }) => taskId),
        ]);
        worst = Math.max(worst, n as number);
        looks++;
      }
    })();
    const deadline = performance.now() + 120_000;
    const work = stores.map(async (store, at) => {
      const of = sessions[at] as number;
      while (ended < total && performance.now() < deadline) {
        await store.plans.admitHeld(stage.nowMs, stage.nowMs);
        const { runs: directed } = await store.routes.view(stage.nowMs, 100, [], 0);
        if (directed.length > 0)
          await store.routes.address(
            directed.map(({ runId, taskId }, i) => {
              const to = (i + at) % sessions.length;
              return { runId, taskId, sessionId: sessions[to] as number, node: `n${to}`, turn: ++turns };
            }),
            stage.nowMs,
          );
        const runs = await claim(
          tasks[0] as TaskRecord,
          { sessionId: of, groupIds: [-of, tasks[0]?.groupId], limit: 3 },
          store,
        );
        // Other workers claim before these runs end: a run counts towards the limit until its end is committed.
        await end(runs, succeededVerdict, of, store);
        ended += runs.length;
      }
    });
    await Promise.all([watch, ...work]);
    expect(ended).toBe(total);
    expect(looks).toBeGreaterThan(5);
    expect(worst).toBeLessThanOrEqual(4);
    expect(worst, "and the room is used").toBeGreaterThan(1);
  });

  it("a dead worker's runs count until they are reclaimed, and not afterwards", async () => {
    const { tasks } = await group(2, {});
    const [task] = tasks as [TaskRecord];
    await many(task, 3);
    const of = await stage.session("worker");
    const lost = await claim(task, { sessionId: of });
    expect(lost).toHaveLength(2);
    await stage.store.sessions.end(of, null, stage.nowMs, "silent");
    expect(await claim(task)).toEqual([]);
    expect(await stage.store.claims.reclaim(of, 0, stage.nowMs, 1)).toHaveLength(1);
    expect(await claim(task)).toHaveLength(1);
    expect(await stage.store.claims.reclaim(of, 0, stage.nowMs, 1)).toHaveLength(1);
    const rest = await claim(task);
    expect(rest).toHaveLength(1);
    expect(await claim(task)).toEqual([]);
  });

  it("undecided and retrying runs use no slot, and workers are signalled when such a run frees one", async () => {
    const { tasks } = await group(1, {});
    const [task] = tasks as [TaskRecord];
    await many(task, 3);
    const heard: string[] = [];
    const listening = new AbortController();
    const done = stage.store.signals.listen((signal) => void heard.push(signal.kind), listening.signal);
    const told = async () => {
      await until("the others are told", () => heard.includes("ready"));
      heard.length = 0;
    };
    await until("listening", () => heard.length > 0);
    heard.length = 0;
    const dueMs = stage.nowMs + 60_000;
    await end(await claim(task), { kind: "retry", dueMs, error: null });
    await told();
    await end(await claim(task), { kind: "retry", dueMs, error: null, ask: true });
    await told();
    await end(await claim(task));
    await told();
    listening.abort();
    await done;
  });

  it("a claim at the limit returns no next due time, so that workers do not poll in vain; below it, it does", async () => {
    const { tasks } = await group(1, {});
    const [task] = tasks as [TaskRecord];
    await many(task, 2);
    await many(task, 1, { dueMs: stage.nowMs + 5_000 });
    expect(await ask(task)).toMatchObject({ runs: [{ linked: true }], nextDueMs: null });
    expect(await ask(task)).toEqual({ runs: [], nextDueMs: null });
    await stage.store.groups.limit(task.definition.group, 3, change(stage.nowMs));
    expect(await ask(task)).toMatchObject({ runs: [{}], nextDueMs: stage.nowMs + 5_000 });
  });

  it("tasks are served fairly however large a backlog is, and a higher priority comes first", async () => {
    const { tasks } = await group(1, {}, {}, {});
    const [crowd, second, third] = tasks as [TaskRecord, TaskRecord, TaskRecord];
    await many(crowd, 200, { dueMs: stage.nowMs - 1_000 });
    await many(second, 3);
    await many(third, 3);
    await many(crowd, 1, { priority: 8 });
    const order: number[] = [];
    for (let i = 0; i < 8; i++) {
      const runs = await claim(crowd);
      expect(runs).toHaveLength(1);
      order.push(tasks.findIndex(({ taskId }) => taskId === runs[0]?.taskId));
      await end(runs);
    }
    expect(order).toEqual([0, 1, 2, 0, 1, 2, 0, 1]);
    await stage.store.groups.limit(crowd.definition.group, 5, change(stage.nowMs));
    const five = (await claim(crowd)).map(({ taskId }) => taskId);
    expect(five.filter((id) => id === second.taskId)).toHaveLength(0 + 3 - order.filter((at) => at === 1).length);
    expect(five.filter((id) => id === third.taskId)).toHaveLength(1);
    expect(five).toHaveLength(5);
  });

  it("a worker gets no more runs than it can start at once, and a limited group does not delay other groups", async () => {
    const limited = await group(50, {});
    const other = await group(null, {});
    const [task] = limited.tasks as [TaskRecord];
    const [plain] = other.tasks as [TaskRecord];
    await many(task, 60);
    await many(plain, 60);
    await claim(task, { limit: 1 });
    expect(await claim(task, { free: 3 })).toHaveLength(3);
    const runs = await claim(task, { groupIds: [task.groupId, plain.groupId], limit: 20 });
    expect(runs.filter(({ taskId }) => taskId === task.taskId)).toHaveLength(10);
    expect(runs.filter(({ taskId }) => taskId === plain.taskId)).toHaveLength(10);
    const turn = {
      leastPriority: 0,
      waitingTaskIds: [],
      each: 2,
      afterTaskId: 0,
      groupIds: [task.groupId, plain.groupId],
    };
    const took = await stage.store.claims.turn({
      sessionId: session,
      exceptTaskIds: [],
      untilMs: stage.nowMs,
      limit: 100,
      nowMs: stage.nowMs,
      ...turn,
    });
    expect(took.runs.map(({ taskId }) => taskId).sort()).toEqual(
      [task.taskId, task.taskId, plain.taskId, plain.taskId].sort(),
    );
  });

  it("a claim of a draining session reports that even if all of its groups have limits", async () => {
    const { tasks } = await group(5, {});
    const [task] = tasks as [TaskRecord];
    const draining = await stage.session();
    expect(await claim(task, { sessionId: draining })).toEqual([]);
    await stage.sql.query(`update ${stage.schema}.session set draining = true where id = $1`, [draining]);
    const request = {
      groupIds: [task.groupId],
      exceptTaskIds: [],
      untilMs: stage.nowMs,
      limit: 10,
      nowMs: stage.nowMs,
    };
    expect(await stage.store.claims.claim({ ...request, sessionId: draining })).toMatchObject({
      runs: [],
      draining: true,
    });
  });

  it("a claim takes runs of limited and unlimited groups by priority, and from both at equal priority", async () => {
    const limited = await group(50, {});
    const other = await group(null, {});
    const [task] = limited.tasks as [TaskRecord];
    const [plain] = other.tasks as [TaskRecord];
    const groupIds = [task.groupId, plain.groupId];
    // The first claim caches the group's limit.
    expect(await claim(task, { groupIds })).toEqual([]);
    for (const priority of [1, 4, 4, 8]) await stage.enqueue(task, { priority });
    for (const priority of [2, 4, 4, 9]) await stage.enqueue(plain, { priority });
    const taken: string[] = [];
    for (const limit of [1, 1, 1, 2, 4]) {
      const runs = await claim(task, { groupIds, limit });
      const named = runs.map(({ taskId, priority }) => `${taskId === task.taskId ? "limited" : "other"} ${priority}`);
      taken.push(named.toSorted().join(", "));
    }
    expect(taken).toEqual(["other 9", "limited 8", "limited 4", "limited 4, other 4", "limited 1, other 2, other 4"]);
  });

  it("a fair claim takes no run below the waiting priority, and of a waiting task only runs above it", async () => {
    const { tasks } = await group(50, {}, {});
    const [waits, other] = tasks as [TaskRecord, TaskRecord];
    for (const priority of [2, 4, 4, 8]) await stage.enqueue(waits, { priority });
    for (const priority of [2, 4]) await stage.enqueue(other, { priority });
    await claim(waits, { limit: 1 });
    const turned = async () => {
      const turn = { leastPriority: 4, waitingTaskIds: [waits.taskId], each: 9, afterTaskId: 0, sessionId: session };
      const at = { exceptTaskIds: [], untilMs: stage.nowMs, nowMs: stage.nowMs, limit: 100, groupIds: [waits.groupId] };
      const { runs } = await stage.store.claims.turn({ ...turn, ...at });
      return runs.map(({ taskId, priority }) => [taskId === waits.taskId ? "waits" : "other", priority]);
    };
    await stage.enqueue(waits, { priority: 8 });
    expect((await turned()).sort()).toEqual([
      ["other", 4],
      ["waits", 8],
    ]);
    expect(await turned(), "the rest would begin no sooner here").toEqual([]);
  });

  it("applies to a process that has not cached it, which then learns it; and ends for one that had cached it", async () => {
    const { name, tasks } = await group(null, {}, { route: "random" });
    const [task, directed] = tasks as [TaskRecord, TaskRecord];
    await many(task, 10);
    const other = await stage.another();
    expect(await claim(task, { limit: 1 }, other), "without a limit").toHaveLength(1);
    await stage.store.groups.limit(name, 2, change(stage.nowMs));
    // A fairness claim returns no run here, because `other` has cached that the group has no limit. A claim with spare capacity rereads
    // limits.
    const turn = {
      leastPriority: 0,
      waitingTaskIds: [],
      each: 5,
      afterTaskId: 0,
      sessionId: session,
      groupIds: [task.groupId],
    };
    const took = await other.claims.turn({
      ...turn,
      exceptTaskIds: [],
      untilMs: stage.nowMs,
      limit: 100,
      nowMs: stage.nowMs,
    });
    expect(took.runs).toEqual([]);
    expect(await claim(task, {}, other), "one is claimed already").toHaveLength(1);
    // A run that is addressed to a session cannot exceed the limit either.
    await many(directed, 1);
    const { runs } = await stage.store.routes.view(stage.nowMs, 10, [], 0);
    const mine = runs.filter(({ taskId }) => taskId === directed.taskId);
    await stage.store.routes.address(
      mine.map(({ runId, taskId }) => ({ runId, taskId, sessionId: session, node: "n", turn: 1 })),
      stage.nowMs,
    );
    const third = await stage.another();
    expect(await claim(task, { groupIds: [-session] }, third)).toEqual([]);
    expect(await ask(task, { groupIds: [-session, task.groupId] }, third)).toEqual({ runs: [], nextDueMs: null });
    await stage.store.groups.limit(name, null, change(stage.nowMs));
    expect(await claim(task, { groupIds: [-session, task.groupId] }, third)).toHaveLength(9);
  });

  it("late and paused runs do not use the slots of runs that can start", async () => {
    const { tasks } = await group(2, {});
    const [task] = tasks as [TaskRecord];
    await many(task, 3);
    // Makes the runs look as if a transaction older than the task's pause had enqueued them.
    await stage.sql.query(`update ${stage.schema}.plan set paused = true where task_id = $1`, [task.taskId]);
    expect(await claim(task)).toEqual([]);
    expect(
      await stage.one("select count(*)::int as n from $s.run where task_id = $1 and state = 1", [task.taskId]),
    ).toEqual({
      n: 3,
    });
    await stage.sql.query(`update ${stage.schema}.plan set paused = false where task_id = $1`, [task.taskId]);
    await many(task, 3);
    expect(await claim(task)).toHaveLength(2);
  });

  it("is shown with author and blocked runs; a wrong name or number is refused, an equal limit changes nothing", async () => {
    const { name, tasks } = await group(null, {});
    const [task] = tasks as [TaskRecord];
    const { groups } = stage.store;
    const of = async () => (await groups.list(stage.nowMs, allGroups)).find((one) => one.name === name);
    expect(await of()).toEqual({
      name,
      tasks: 1,
      workers: 0,
      limit: null,
      claimed: 0,
      waiting: 0,
      changed: null,
    });
    const why = { author: "ann", reason: "four cards", nowMs: stage.nowMs };
    expect(await groups.limit(name, 1, why)).toEqual({ changed: true });
    expect(await groups.limit(name, 1, { ...why, reason: "again" })).toEqual({ changed: false });
    await many(task, 3, { dueMs: stage.nowMs - 60_000 });
    await claim(task);
    const changed = { atMs: stage.nowMs, by: "ann", why: "four cards" };
    expect(await of()).toMatchObject({ limit: 1, claimed: 1, waiting: 2, changed });
    const { cluster } = await inspectPostgres(server.url, stage.schema);
    expect(cluster?.fullGroups).toContainEqual(expect.objectContaining({ group: name, limit: 1, waiting: 2 }));
    expect(cluster?.overdue.map(({ group: one }) => one)).not.toContain(name);
    await groups.limit(name, null, why);
    const told = await stage.rows<{ most: number | null }>(
      "select c.most from $s.group_limit_change c join $s.worker_group g on g.id = c.group_id where g.name = $1 order by c.id",
      [name],
    );
    expect(
      told.map(({ most }) => most),
      "each change once",
    ).toEqual([1, null]);
    await expect(groups.limit("nobody", 1, why)).rejects.toMatchObject({ code: "GROUP_UNKNOWN" });
    const tower = carillon({ store: server.url, schema: stage.schema, handleSignals: false });
    towers.push(tower);
    for (const wrong of [0, 1.5, -1, Number.NaN, 1_000_000])
      await expect(tower.limitGroup(name, wrong)).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await tower.limitGroup(name, 7, { reason: "by the library" });
    expect(await of()).toMatchObject({ limit: 7, changed: { why: "by the library" } });
  });

  it("two whole processes run exactly as many runs at once as the limit allows, without pauses in between", async () => {
    const schema = `${stage.schema}_towers`;
    let [now, worst, ended] = [0, 0, 0];
    const make = () => {
      const tower = carillon({ store: server.url, schema, handleSignals: false, concurrency: 10, groups: ["shared"] });
      towers.push(tower);
      for (const name of ["left", "right"])
        tower.task(name, { group: "shared" }, async () => {
          worst = Math.max(worst, ++now);
          await new Promise((resolve) => setTimeout(resolve, 20));
          now--;
          ended++;
        });
      return tower;
    };
    const [one, two] = [make(), make()];
    try {
      await Promise.all([one.start(), two.start()]);
      await one.limitGroup("shared", 3);
      await Promise.all(Array.from({ length: 60 }, (_, i) => one.enqueue(i % 2 === 0 ? "left" : "right")));
      await until("all of them to end", () => ended === 60);
      expect(worst).toBe(3);
    } finally {
      await Promise.all(towers.splice(0).map((tower) => tower.stop()));
      await stage.sql.query(`drop schema if exists ${schema} cascade`);
    }
  });
});
