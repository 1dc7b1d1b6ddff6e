import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import { every } from "../../src/schedule/schedule.ts";
import type { Store } from "../../src/store/store.ts";
import { edited } from "../../src/task/edits.ts";
import { defineTask, type TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { StoreProxy } from "../support/proxy.ts";
import { everyPostgres } from "../support/servers.ts";
import {
  asCode,
  change,
  onward,
  openStage,
  type Stage,
  settlement,
  succeededVerdict,
  until,
} from "../support/store-stage.ts";

const failedVerdict: Verdict = { kind: "ended", outcome: "failed", result: null, error: '{"message":"no"}' };
const cancelledVerdict: Verdict = { kind: "ended", outcome: "cancelled", result: null, error: null };

describe.each(everyPostgres())("runs that start further runs, on $title", (server) => {
  let stage: Stage;
  let session: number;
  let proxy: StoreProxy;
  /** The store, reached through a proxy that can lose replies. */
  let far: Store;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
    proxy = await StoreProxy.before(server.url);
    far = await openProxied();
  });
  afterEach(() => proxy.heal());
  afterAll(async () => {
    await far.close();
    await proxy.close();
    await stage.close();
  });

  async function openProxied(): Promise<Store> {
    const { openPostgres } = await import("../../src/store/postgres/postgres.ts");
    return openPostgres({ url: proxy.url, schema: stage.schema, connectionsMax: 1 });
  }

  let groups = 0;
  const task = (name: string, options: TaskOptions = {}) =>
    stage.task(name, { group: `f${++groups}`, grace: 0, ...options });
  const settle = (run: ClaimedRun, verdict: Verdict = succeededVerdict, store = stage.store) =>
    store.claims.settle(session, [settlement(run, verdict, stage.nowMs)], stage.nowMs);
  const claim = (...tasks: TaskRecord[]) => stage.claim(session, tasks);
  const one = async (of: TaskRecord): Promise<ClaimedRun> => {
    const runs = await claim(of);
    expect(runs).toHaveLength(1);
    return runs[0] as ClaimedRun;
  };
  /** Enqueues a run of the task and claims it. */
  const begun = async (of: TaskRecord) => {
    await stage.enqueue(of);
    return one(of);
  };
  const children = (of: TaskRecord, keys: string[]) =>
    keys.map((key) => ({ taskId: of.taskId, payload: `"${key}"`, key }));

  describe("a task with `after`", () => {
    it.each([
      ["success", succeededVerdict, 1],
      ["success", failedVerdict, 0],
      ["failure", succeededVerdict, 0],
      ["failure", failedVerdict, 1],
      ["any", succeededVerdict, 1],
      ["any", failedVerdict, 1],
      ["any", cancelledVerdict, 0],
    ] as const)("on %s, of %j: %i runs", async (on, verdict, count) => {
      const a = await task(`a${groups}`);
      const b = await task(`b${groups}`, { after: { tasks: a.name, on }, slotPayload: { by: "a" } });
      const run = await begun(a);
      expect(run.linked).toBe(true);
      await settle(run, verdict);
      const made = await claim(b);
      expect(made).toHaveLength(count);
      if (made[0]) {
        expect(made[0].payload).toEqual({ by: "a" });
        expect(await stage.store.flow.inputs({ runId: made[0].runId })).toMatchObject([
          { runId: run.runId, task: a.name },
        ]);
        expect(await stage.store.flow.relatives(run.runId, 10)).toMatchObject([
          { runId: made[0].runId, relation: "after" },
        ]);
        expect(await stage.store.flow.relatives(made[0].runId, 10)).toMatchObject([
          { runId: run.runId, relation: "parent" },
        ]);
      }
    });

    it("is announced to the workers at once, when it can be claimed", async () => {
      const a = await task(`a${groups}`);
      await task(`b${groups}`, { after: a.name });
      const run = await begun(a);
      const heard: string[] = [];
      const listening = new AbortController();
      const done = stage.store.signals.listen((signal) => void heard.push(signal.kind), listening.signal);
      await until("listening", () => heard.length > 0);
      heard.length = 0;
      await settle(run);
      await until("the workers are told", () => heard.includes("ready"));
      listening.abort();
      await done;
    });

    it("is made once, even if the reply to the commit is lost, or the verdict comes twice or late", async () => {
      const a = await task("once-a");
      const b = await task("once-b", { after: "once-a" });
      const run = await begun(a);
      proxy.swallowCommit();
      expect(await settle(run, succeededVerdict, far)).toEqual(new Set());
      expect(proxy.swallowed).toBe(1);
      expect(await settle(run)).toEqual(new Set());
      await settle(await one(b));
      const lost = await begun(a);
      const dying = session;
      session = await stage.session("worker");
      await stage.store.sessions.end(dying, null, stage.nowMs, "silent");
      await stage.store.claims.reclaim(dying, 0, stage.nowMs, 1_000);
      await stage.store.claims.settle(dying, [settlement(lost, succeededVerdict, stage.nowMs)], stage.nowMs);
      expect(await claim(b), "a late result begins nothing").toEqual([]);
      await settle(await one(a));
      expect(await claim(b)).toHaveLength(1);
    });

    it("follows a run that failed with its worker, and one that an operator decided", async () => {
      const a = await task("given-up", { onWorkerLost: "fail" });
      const asked = await task("asked", { onWorkerLost: "ask" });
      const b = await task("picks-up", { after: { tasks: "given-up", on: "failure" } });
      const c = await task("picks-up-asked", { after: { tasks: "asked", on: "failure" } });
      await begun(a);
      const { runId } = await begun(asked);
      const dying = session;
      session = await stage.session("worker");
      await stage.store.sessions.end(dying, null, stage.nowMs, "silent");
      await stage.store.claims.reclaim(dying, 0, stage.nowMs, 1_000);
      expect(await claim(b)).toHaveLength(1);
      expect(await claim(c)).toEqual([]);
      await stage.store.flow.decide(runId, "fail", "", stage.nowMs, "test");
      expect(await claim(c)).toHaveLength(1);
    });

    it("waits for a slot, and during a pause", async () => {
      const a = await task("into-gate");
      const b = await task("gate", { after: "into-gate", overlap: "queue" });
      await settle(await begun(a));
      await settle(await begun(a));
      const first = await one(b);
      await settle(first);
      await stage.store.tasks.pause("gate", change(stage.nowMs));
      await settle(await begun(a));
      expect(await claim(b)).toEqual([]);
      await stage.store.tasks.resume("gate", change(stage.nowMs));
      expect(await claim(b)).toHaveLength(1);
    });

    it("after several tasks runs once per slot or root run, when all their runs have ended as required", async () => {
      const root = await task("root");
      const left = await task("left", { after: "root" });
      const right = await task("right", { after: "root" });
      const end = await task("end", { after: ["left", "right"] });
      const begin = async () => {
        await settle(await begun(root));
        return { left: await one(left), right: await one(right) };
      };
      const [first, second] = [await begin(), await begin()];
      await settle(first.left);
      await settle(second.right);
      expect(await claim(end), "of two beginnings").toEqual([]);
      // The reply to the commit is lost, but the steps that follow the commit are carried out.
      proxy.swallowCommit();
      await settle(second.left, succeededVerdict, far);
      const joined = await one(end);
      expect((await stage.store.flow.inputs({ runId: joined.runId })).map(({ runId }) => runId).sort()).toEqual(
        [second.left.runId, second.right.runId].sort(),
      );
      await settle(first.right, failedVerdict);
      expect(await claim(end), "one of them failed").toEqual([]);
      expect(await stage.one("select count(*) as n from $s.arrival")).toEqual({ n: 1 });
    });

    it("after several tasks that end at one instant runs once", async () => {
      await expect(task("many-0", { after: "seed" }), "what it comes after is no task yet").rejects.toMatchObject({
        code: "TASK_INVALID",
      });
      const seed = await task("seed");
      const tasks = await Promise.all(Array.from({ length: 8 }, (_, i) => task(`many-${i}`, { after: "seed" })));
      const last = await task("last", { after: tasks.map(({ name }) => name) });
      for (let round = 0; round < 5; round++) {
        await settle(await begun(seed));
        const runs = await claim(...tasks);
        expect(runs).toHaveLength(8);
        await Promise.all(runs.map((run) => settle(run)));
        expect(await claim(last)).toHaveLength(1);
      }
    });

    it("is refused in a cycle, after itself, after an unknown task, and with a schedule", async () => {
      await task("x");
      await task("y", { after: "x" });
      await task("z", { after: ["x", "y"] });
      await expect(task("x", { after: "z" })).rejects.toMatchObject({
        code: "TASK_INVALID",
        message: expect.stringMatching(/after itself: x after z after (y after )?x/),
      });
      expect(() => defineTask("x", { after: "x" })).toThrow(/itself/);
      expect(() => defineTask("s", { after: "x", schedule: every("1s") })).toThrow(/schedule/);
      for (const after of [[], { tasks: "x", on: "later" }, { task: "x" }, 7] as never[])
        expect(() => defineTask("s", { after })).toThrow(/after/);
      await expect(task("w", { after: "nobody" })).rejects.toMatchObject({ code: "TASK_INVALID" });
      expect((await stage.store.tasks.byName("x")).definition.after, "nothing of it was stored").toBeUndefined();
      await expect(
        stage.store.tasks.saveAll(
          [defineTask("p", { after: "q" }), defineTask("q", { after: "p" })],
          change(stage.nowMs),
          asCode,
        ),
      ).rejects.toThrow(/after itself: p after q after p/);
    });

    it("two concurrent saves cannot form a cycle together", async () => {
      for (let round = 0; round < 5; round++) {
        const [m, n] = [`m${round}`, `n${round}`];
        await task(m);
        await task(n);
        const saves = await Promise.allSettled([task(m, { after: n }), task(n, { after: m })]);
        expect(saves.filter(({ status }) => status === "rejected")).toHaveLength(1);
      }
    });

    it("is listed by the task before it; an edit can make it wait for fewer tasks, or for none", async () => {
      const [a, b] = [await task(`a${groups}`), await task(`b${groups}`)];
      const both = await task(`both${groups}`, { after: [a.name, b.name] });
      const alarm = await task(`alarm${groups}`, { after: { tasks: a.name, on: "failure" } });
      expect(await stage.store.flow.followers(a.taskId)).toEqual([
        { task: alarm.name, on: "failure", with: [] },
        { task: both.name, on: "success", with: [b.name] },
      ]);
      await settle(await begun(a));
      expect(await claim(both)).toEqual([]);
      const save = (of: TaskRecord, options: TaskOptions) =>
        stage.store.tasks.save(edited(of.definition, options), null, change(stage.nowMs));
      const { record } = await save(both, { after: [a.name] });
      expect(record.definition).toMatchObject({
        after: { tasks: [a.name] },
        asDefined: { after: { tasks: [a.name, b.name] } },
      });
      await stage.store.plans.admitHeld(stage.nowMs, stage.nowMs);
      expect(await claim(both), "what had waited for b alone").toHaveLength(1);
      await save(record, { after: null });
      await save(alarm, { after: null });
      expect(await stage.store.flow.followers(a.taskId)).toEqual([]);
      await settle(await begun(a));
      expect(await claim(both)).toEqual([]);
    });

    it("stops following once edited or removed; the task before it then has no overhead", async () => {
      const a = await task("left-alone");
      const b = await task("leaves", { after: "left-alone" });
      await task("leaves");
      const run = await begun(a);
      expect(run.linked).toBe(false);
      await task("leaves", { after: "left-alone" });
      await stage.store.tasks.remove("leaves", change(stage.nowMs));
      await settle(run);
      await settle(await begun(a));
      expect(await stage.one("select count(*) as n from $s.run where task_id = $1", [b.taskId])).toEqual({ n: 0 });
    });
  });

  describe("children", () => {
    it("are made once per key, whichever attempt of the parent requests them, even if they have ended", async () => {
      const parent = await task("parent");
      const child = await task("child");
      const run = await begun(parent);
      proxy.swallowCommit();
      const first = await far.flow.spawn(run, children(child, ["a", "b", "a"]), stage.nowMs);
      expect(first[0]?.runId).toBe(first[2]?.runId);
      const [a] = await claim(child);
      await settle(a as ClaimedRun);
      await settle(run, { kind: "retry", dueMs: stage.nowMs, error: null });
      await expect(stage.store.flow.spawn(run, children(child, ["c"]), stage.nowMs)).rejects.toMatchObject({
        code: "FENCE_STALE",
      });
      const again = await one(parent);
      const second = await stage.store.flow.spawn(again, children(child, ["a", "b", "c"]), stage.nowMs);
      expect(second.map(({ created }) => created)).toEqual([false, false, true]);
      expect(second.slice(0, 2).map(({ runId }) => runId)).toEqual(first.slice(0, 2).map(({ runId }) => runId));
      await expect(
        stage.store.flow.spawn(again, [{ taskId: 10 ** 9, payload: null, key: "d" }], stage.nowMs),
      ).rejects.toMatchObject({
        code: "TASK_UNKNOWN",
      });
      await expect(stage.store.flow.taskId("no such task")).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
    });

    it("1,000 children that end at once on several connections are joined exactly once, with their outcomes", async () => {
      const parent = await task("burst");
      const child = await task("burst-child");
      const join = await task("burst-join");
      const run = await begun(parent);
      const keys = Array.from({ length: 1_000 }, (_, i) => `k${i}`);
      await stage.store.flow.spawn(run, children(child, keys), stage.nowMs);
      await settle(run, onward({ kind: "join", taskId: join.taskId, payload: '"sum"' }));
      const runs = await claim(child);
      expect(runs).toHaveLength(1_000);
      const stores = await Promise.all(Array.from({ length: 4 }, () => stage.another({ connectionsMax: 3 })));
      const batches: Promise<unknown>[] = [];
      for (let from = 0; from < runs.length; from += 23) {
        const items = runs.slice(from, from + 23).map((one) =>
          settlement(
            one,
            {
              ...succeededVerdict,
              kind: "ended",
              outcome: "succeeded",
              error: null,
              result: JSON.stringify(one.payload),
            },
            stage.nowMs,
          ),
        );
        batches.push((stores[(from / 23) % 4] as Store).claims.settle(session, items, stage.nowMs));
      }
      await Promise.all(batches);
      const joining = await one(join);
      expect(joining.payload).toBe("sum");
      const inputs = await stage.store.flow.inputs({ runId: joining.runId });
      expect(inputs.map(({ key, result }) => [key, result]).sort()).toEqual(keys.map((key) => [key, key]).sort());
      expect(await stage.one("select count(*) as n from $s.gathering")).toEqual({ n: 0 });
    });

    it("are joined by the sweep if the signal of the last child's cancellation is lost", async () => {
      const parent = await task("cancels");
      const child = await task("cancelled-child");
      const join = await task("after-cancel");
      const run = await begun(parent);
      const [one1] = await stage.store.flow.spawn(run, children(child, ["only"]), stage.nowMs);
      await settle(run, onward({ kind: "join", taskId: join.taskId, payload: null }));
      await stage.store.runs.cancel((one1 as { runId: number }).runId, "no", stage.nowMs);
      // No node receives the signals of this test. joins.test.ts tests the case with a node.
      expect(await claim(join)).toEqual([]);
      await stage.store.plans.admitHeld(stage.nowMs, stage.nowMs);
      const joining = await one(join);
      expect(await stage.store.flow.inputs({ runId: joining.runId })).toMatchObject([
        { outcome: "cancelled", key: "only" },
      ]);
    });

    it("an empty set of children is joined at once, even if the reply to the parent's end is lost", async () => {
      const parent = await task("childless");
      const join = await task("joins-none", { overlap: "queue" });
      const run = await begun(parent);
      proxy.swallowCommit();
      await settle(run, onward({ kind: "join", taskId: join.taskId, payload: null }), far);
      expect(await claim(join)).toHaveLength(1);
    });
  });

  describe("a chain", () => {
    it("continues in the write that ends its run, with key and state; followers wait for its last run", async () => {
      const link = await task("link");
      const after = await task("after-chain", { after: "link" });
      await stage.enqueue(link, { key: "the-one" });
      const run = await one(link);
      proxy.swallowCommit();
      await settle(run, onward({ kind: "continue", payload: '{"page":2}', state: '{"seen":1}' }), far);
      const next = await one(link);
      expect(next).toMatchObject({ key: "the-one", payload: { page: 2 }, state: { seen: 1 }, attempt: 1 });
      expect(await claim(after)).toEqual([]);
      await settle(next);
      expect(await claim(after)).toHaveLength(1);
      expect(await stage.store.flow.relatives(run.runId, 10)).toMatchObject([{ runId: next.runId, relation: "chain" }]);
      expect(await stage.store.flow.inputs({ runId: next.runId })).toMatchObject([{ runId: run.runId }]);
    });

    it.each([{ limitKey: "customer-7" }, { key: "a" }, {}])(
      "of a run with %j waits for its turn among the runs of its limit key",
      async (keys) => {
        const link = await task(`limited-link${groups}`, { limit: { perKey: 1 } });
        await stage.enqueue(link, keys);
        const run = await one(link);
        const limitKey = keys.limitKey ?? keys.key;
        const other = await stage.enqueue(link, limitKey === undefined ? {} : { limitKey });
        await settle(run, onward({ kind: "continue", payload: null, state: null }));
        const turn = await one(link);
        expect(turn.runId).toBe(other);
        await settle(turn);
        const next = await one(link);
        expect(await stage.store.runs.find(next.runId)).toMatchObject({ source: "chain", limitKey: limitKey ?? "" });
      },
    );

    it("ends with a run that was asked to stop, and starts no other; a join does not wait for a further run", async () => {
      const parent = await task("stops-parent");
      const link = await task("stops");
      const after = await task("after-stops", { after: "stops" });
      const join = await task("joins-stopped");
      const run = await begun(parent);
      await stage.store.flow.spawn(run, children(link, ["c"]), stage.nowMs);
      await settle(run, onward({ kind: "join", taskId: join.taskId, payload: null }));
      const stopped = await one(link);
      expect(await stage.store.runs.cancel(stopped.runId, "enough", stage.nowMs)).toBe("asked");
      await settle(stopped, onward({ kind: "continue", payload: null, state: null }));
      expect(await stage.store.runs.find(stopped.runId)).toMatchObject({ state: "succeeded" });
      expect(await claim(link, after)).toEqual([]);
      expect(await claim(join)).toHaveLength(1);
    });

    it("of a child counts as one child: its parent's join waits for the last run, and reads its result", async () => {
      const parent = await task("chain-parent");
      const child = await task("chain-child");
      const join = await task("chain-join");
      const run = await begun(parent);
      await stage.store.flow.spawn(run, children(child, ["c"]), stage.nowMs);
      await settle(run, onward({ kind: "join", taskId: join.taskId, payload: null }));
      await settle(await one(child), onward({ kind: "continue", payload: null, state: null }));
      expect(await claim(join)).toEqual([]);
      const last = await one(child);
      await settle(last, { ...succeededVerdict, kind: "ended", outcome: "succeeded", error: null, result: "7" });
      const joining = await one(join);
      expect(await stage.store.flow.inputs({ runId: joining.runId })).toMatchObject([
        { runId: last.runId, key: "c", result: 7 },
      ]);
    });
  });

  it.each([{}, { limit: { perKey: 1 } }])(
    "after the removal of a task with %j, no next run and no join is made",
    async (options) => {
      const parent = await task(`outlives${groups}`);
      const child = await task(`outlived${groups}`, options);
      const join = await task(`joins-outlived${groups}`, options);
      const run = await begun(parent);
      await stage.store.flow.spawn(run, children(child, ["c"]), stage.nowMs);
      await settle(run, onward({ kind: "join", taskId: join.taskId, payload: null }));
      const last = await one(child);
      for (const { name } of [child, join]) await stage.store.tasks.remove(name, change(stage.nowMs));
      await settle(last, onward({ kind: "continue", payload: null, state: null }));
      const both = [child.taskId, join.taskId];
      expect(await stage.rows("select task_id from $s.run where task_id = any($1)", [both])).toEqual([]);
      expect(await stage.rows("select task_id from $s.gathering")).toEqual([]);
    },
  );

  it("a handler's requests wait while the store is unreachable", async () => {
    const [parent, child] = [await task("patient"), await task("patient-child")];
    const run = await begun(parent);
    for (const [ask, answer] of [
      [() => far.flow.taskId("patient-child"), child.taskId],
      [() => far.flow.inputs(run), []],
    ] as const) {
      const before = proxy.connections;
      proxy.cut({ refuse: true });
      const asked = ask();
      await until("two tries to be refused", () => proxy.connections >= before + 2);
      proxy.heal();
      expect(await asked).toEqual(answer);
    }
    await settle(run);
  });

  it("a saved state survives a retry and a lost worker, is refused from an old claim, and is deleted at the end", async () => {
    const long = await task("long");
    const run = await begun(long);
    proxy.swallowReply((reply) => reply.toString("latin1").includes("?column?"));
    expect(await far.flow.saveState(run.runId, run.fence, '{"at":1}')).toBe(true);
    await settle(run, { kind: "retry", dueMs: stage.nowMs, error: null });
    const second = await one(long);
    expect(second.state).toEqual({ at: 1 });
    expect(await stage.store.flow.saveState(run.runId, run.fence, '{"at":0}')).toBe(false);
    const dying = session;
    session = await stage.session("worker");
    await stage.store.sessions.end(dying, null, stage.nowMs, "silent");
    await stage.store.claims.reclaim(dying, 0, stage.nowMs, 1_000);
    const third = await one(long);
    expect(third.state).toEqual({ at: 1 });
    await settle(third);
    expect(await stage.store.flow.saveState(third.runId, third.fence, "1")).toBe(false);
  });
});
