import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import { sourceNumber } from "../../src/store/postgres/enqueue/sources.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { ApiStage } from "../support/api-stage.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, onward, openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

describe.each(everyPostgres())("what is connected, on $title", (server) => {
  let stage: Stage;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterAll(() => stage.close());

  const task = (name: string, options: TaskOptions = {}) => stage.task(name, { group: `g-${name}`, ...options });
  const settle = (run: ClaimedRun, verdict: Verdict = succeededVerdict) =>
    stage.store.claims.settle(session, [settlement(run, verdict, stage.nowMs)], stage.nowMs);
  const one = async (of: TaskRecord): Promise<ClaimedRun> => (await stage.claim(session, [of]))[0] as ClaimedRun;
  const children = (of: TaskRecord, n: number) =>
    Array.from({ length: n }, (_, at) => ({ taskId: of.taskId, payload: null, key: `k${at}` }));
  const family = async (run: number, limit = 100) => {
    const { runs, more } = await stage.store.flow.family(run, limit);
    return { ids: runs.map((each) => each.run.runId), runs, more };
  };

  describe("the family of a run", () => {
    it("has its parent, its children, the join of these and what comes after it, from wherever it is asked", async () => {
      const [split, part] = [await task("split"), await task("part")];
      const join = await task("join");
      const after = await task("after-join", { after: "join" });
      await stage.enqueue(split);
      const parent = await one(split);
      await stage.store.flow.spawn(parent, children(part, 3), stage.nowMs);
      await settle(parent, onward({ kind: "join", taskId: join.taskId, payload: null }));
      for (const child of await stage.claim(session, [part])) await settle(child);
      const joined = await one(join);
      await settle(joined);
      const last = await one(after);
      const { ids, runs, more } = await family(last.runId);
      expect(ids).toHaveLength(6);
      expect(more).toBe(false);
      expect(runs.map(({ run, parentId }) => [run.task, run.state, run.source, parentId])).toEqual([
        ["split", "succeeded", "enqueue", null],
        ...[1, 2, 3].map(() => ["part", "succeeded", "child", parent.runId]),
        ["join", "succeeded", "join", parent.runId],
        ["after-join", "claimed", "after", joined.runId],
      ]);
      for (const id of ids) expect((await family(id)).ids).toEqual(ids);
    });

    it("has at most so many runs, those nearest to the run, and says that there are more", async () => {
      const [root, leaf] = [await task("wide"), await task("leaf")];
      await stage.enqueue(root);
      const parent = await one(root);
      await stage.store.flow.spawn(parent, children(leaf, 20), stage.nowMs);
      const all = await family(parent.runId);
      expect(all.ids).toHaveLength(21);
      expect(all.more).toBe(false);
      const child = all.ids.at(-1) as number;
      const some = await family(child, 5);
      expect(some.ids).toEqual([...all.ids.slice(0, 4), child]);
      expect(some.more).toBe(true);
      expect((await family(parent.runId, 21)).more).toBe(false);
      expect((await family(parent.runId, 20)).more).toBe(true);
    });

    it("of a chain has ten links on both sides", async () => {
      const chain = await task("chain");
      await stage.enqueue(chain);
      const links: number[] = [];
      for (let link = 0; link < 25; link++) {
        const run = await one(chain);
        links.push(run.runId);
        await settle(run, onward({ kind: "continue", payload: null, state: null }));
      }
      const { ids, runs, more } = await family(links[12] as number);
      expect(ids).toEqual(links.slice(2, 23));
      expect(more).toBe(true);
      expect(runs.slice(1).every(({ inputs }, at) => inputs[0] === ids[at])).toBe(true);
    });

    it("leads from a run after several tasks to the runs that it follows", async () => {
      const fork = await task("fork");
      const [a, b] = [await task("fork-a", { after: "fork" }), await task("fork-b", { after: "fork" })];
      const both = await task("fork-both", { after: ["fork-a", "fork-b"] });
      await stage.enqueue(fork);
      const first = await one(fork);
      await settle(first);
      const [ranA, ranB] = [await one(a), await one(b)];
      await settle(ranA);
      await settle(ranB);
      const last = await one(both);
      const { ids, runs } = await family(last.runId);
      expect(ids).toEqual([first.runId, ranA.runId, ranB.runId, last.runId].sort((x, y) => x - y));
      expect(runs.at(-1)).toMatchObject({ parentId: null, inputs: [ranA.runId, ranB.runId].sort((x, y) => x - y) });
    });

    it("of no run is empty", async () => {
      expect(await stage.store.flow.family(10 ** 9, 10)).toEqual({ runs: [], more: false });
    });
  });

  describe("the tasks that are connected with one", () => {
    it("are those before and after it, over any number of steps, the nearest first, without removed ones", async () => {
      await task("c1");
      await task("c2", { after: "c1" });
      const middle = await task("c3", { after: "c2" });
      await task("c4", { after: ["c3"] });
      await task("c5", { after: "c4" });
      await task("c-side", { after: { tasks: "c1", on: "failure" } });
      await task("alone");
      const which = { taskId: middle.taskId, namespaces: null, limit: 10 };
      const names = await stage.store.flow.connected(which);
      expect([...names].sort()).toEqual(["c-side", "c1", "c2", "c3", "c4", "c5"]);
      expect((await stage.store.flow.connected({ ...which, limit: 3 })).sort()).toEqual(["c2", "c3", "c4"]);
      const every = await stage.store.flow.connected({ ...which, taskId: null, limit: 100 });
      expect(every).toEqual(expect.arrayContaining(names));
      expect(every).not.toContain("alone");
      expect(await stage.store.flow.connected({ ...which, namespaces: ["elsewhere"] })).toEqual([]);
      await stage.store.tasks.remove("c5", change(stage.nowMs));
      expect(await stage.store.flow.connected(which)).not.toContain("c5");
    });

    it("are as many as asked for, although removed tasks and those of other namespaces are nearer", async () => {
      const root = await task("ours/root");
      for (const n of [1, 2, 3]) {
        await task(`ours/removed${n}`, { after: "ours/root" });
        await task(`theirs/near${n}`, { after: "ours/root" });
      }
      await task("ours/behind-removed", { after: "ours/removed1" });
      await task("ours/behind-theirs", { after: "theirs/near1" });
      for (const n of [1, 2, 3, 4]) await task(`ours/live${n}`, { after: "ours/root" });
      for (const n of [1, 2, 3]) await stage.store.tasks.remove(`ours/removed${n}`, change(stage.nowMs));
      const which = { taskId: root.taskId, namespaces: ["ours"], limit: 4 };
      expect(await stage.store.flow.connected(which), "so the route knows that there are more").toHaveLength(4);
      const own = ["ours/live1", "ours/live2", "ours/live3", "ours/live4", "ours/root"];
      expect((await stage.store.flow.connected({ ...which, limit: 10 })).sort()).toEqual(own);
      const all = await stage.store.flow.connected({ ...which, namespaces: null, limit: 20 });
      const theirs = ["ours/behind-theirs", "theirs/near1", "theirs/near2", "theirs/near3"];
      expect(all.sort()).toEqual([...own, ...theirs].sort());
    });
  });
});

describe("the routes of what is connected", () => {
  const stage = new ApiStage();
  beforeAll(() => stage.open());
  afterAll(() => stage.close());

  it("leave out what the caller may not see, and refuse what there is not", async () => {
    await stage.task("ours/load");
    await stage.task("ours/mail", { after: { tasks: "ours/load", on: "any" } });
    await stage.task("theirs/audit", { after: "ours/load" });
    const admin = stage.client();
    const load = { task: "ours/load", paused: false, after: [], on: null };
    const mail = { task: "ours/mail", paused: false, after: ["ours/load"], on: "any" };
    const audit = { task: "theirs/audit", paused: false, after: ["ours/load"], on: "success" };
    expect(await admin.listFlow({})).toMatchObject({ tasks: [load, mail, audit], more: false });
    expect(await admin.listFlow({ task: "theirs/audit" })).toMatchObject({ tasks: [load, mail, audit] });
    const ours = stage.clientOf(await stage.token("viewer", { where: ["ours"] }));
    expect((await ours.listFlow({})).tasks).toMatchObject([load, mail]);
    await expect(ours.listFlow({ task: "theirs/audit" })).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    await expect(admin.listFlow({ task: "none" })).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
    await expect(admin.getRunFamily({ run: 10 ** 9 })).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
    const { run } = await admin.runTask({ task: "ours/load" });
    const [only] = (await ours.getRunFamily({ run })).runs;
    expect(only).toMatchObject({ run, task: "ours/load", parent: null, inputs: [] });
  });

  it("show no number of a run in a namespace that the caller may not see", async () => {
    await stage.task("theirs/source");
    await stage.task("theirs/other");
    await stage.task("ours/sink");
    const admin = stage.client();
    const ours = stage.clientOf(await stage.token("viewer", { where: ["ours"] }));
    const runs: number[] = [];
    for (const task of ["theirs/source", "theirs/other", "ours/sink"])
      runs.push((await admin.runTask({ task, in: "1d" })).run);
    const [source, other, sink] = runs as [number, number, number];
    await stage.rows(`update $s.run set parent_id = $1, inputs = $2 where id = $3 returning id`, [
      source,
      [source, other],
      sink,
    ]);
    const whole = (await admin.getRunFamily({ run: sink })).runs.find(({ run }) => run === sink);
    expect(whole).toMatchObject({ parent: source, inputs: [source, other] });
    expect((await ours.getRunFamily({ run: sink })).runs).toMatchObject([{ run: sink, parent: null, inputs: [] }]);
    expect((await ours.getRun({ run: sink })).relatives).toEqual([]);
  });

  it("show a run's relatives that the caller may see, however many others there are", async () => {
    for (const name of ["ours/root", "ours/near", "theirs/far"]) await stage.task(name);
    const admin = stage.client();
    const ours = stage.clientOf(await stage.token("viewer", { where: ["ours"] }));
    const runsOf = async (task: string, n: number) => {
      const runs: number[] = [];
      while (runs.length < n) runs.push((await admin.runTask({ task, in: "1d" })).run);
      return runs;
    };
    const [root] = await runsOf("ours/root", 1);
    const far = await runsOf("theirs/far", 55);
    const near = await runsOf("ours/near", 3);
    await stage.rows(`update $s.run set parent_id = $1, source = $3 where id = any($2) returning id`, [
      root,
      [...far, ...near],
      sourceNumber("child"),
    ]);
    const shown = async (client: typeof admin) =>
      (await client.getRun({ run: root as number })).relatives.map(({ run }) => run);
    expect(await shown(ours)).toEqual(near);
    expect(await shown(admin)).toEqual(far.slice(0, 50));
  });
});
