import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../src/base/limits.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import type { ClaimedRun, LocalClaims } from "../../src/run/claim-store.ts";
import { defineTask } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { ApiStage } from "../support/api-stage.ts";
import { inProcess } from "../support/in-process.ts";
import { said } from "../support/remote-stage.ts";
import { everyPostgres, postgres } from "../support/servers.ts";
import { change, openStage, recordingLog, type Stage, until } from "../support/store-stage.ts";

describe.each(everyPostgres())("a node drained by $title", (server) => {
  let stage: Stage;
  let task: TaskRecord;
  beforeAll(async () => {
    stage = await openStage(server);
    task = await stage.task("waits");
  });
  afterAll(() => stage.close());

  const why = () => change(stage.nowMs);
  const open = async (node: string): Promise<number> => {
    const identity = { node, role: "node" as const, host: "here", pid: 1, version: "0", timeoutMs: 6_000 };
    const opened = await stage.store.sessions.open(identity, stage.nowMs);
    return "sessionId" in opened ? opened.sessionId : 0;
  };
  const pulse = async (sessionId: number) => (await stage.store.sessions.beat(sessionId, stage.nowMs)).draining;
  const request = (sessionId: number, record = task) => {
    const times = { untilMs: stage.nowMs, nowMs: stage.nowMs };
    return { sessionId, groupIds: [record.groupId], exceptTaskIds: [], limit: 10, ...times };
  };
  const turn = (sessionId: number) =>
    stage.store.claims.turn({ ...request(sessionId), leastPriority: 0, waitingTaskIds: [], each: 1, afterTaskId: 0 });
  const enqueueHere = async (sessionId: number) => {
    const made: ClaimedRun[] = [];
    const local: LocalClaims = {
      ...request(sessionId),
      room: 10,
      made: (runs) => void made.push(...runs),
      lost: () => undefined,
    };
    await stage.store.runs.enqueue([stage.write(task)], stage.nowMs, local);
    return made;
  };

  it("gets no run by any kind of claim, keeps its runs, and gets runs again once it is resumed", async () => {
    const sessionId = await open("one");
    await stage.enqueue(task);
    const [has] = await stage.claim(sessionId, [task]);
    expect(await stage.store.drains.drain("one", why())).toEqual({
      changed: true,
      held: 1,
      runs: [{ run: has?.runId, task: "waits", startedMs: null }],
    });
    expect(await pulse(sessionId)).toBe(true);

    const waits = await stage.enqueue(task);
    const limited = await stage.task("limited", { group: "few" });
    await stage.store.groups.limit("few", 1, why());
    await stage.enqueue(limited);
    expect(await stage.store.claims.claim(request(sessionId))).toMatchObject({ runs: [], draining: true });
    expect((await stage.store.claims.claim(request(sessionId, limited))).runs).toEqual([]);
    expect((await turn(sessionId)).runs).toEqual([]);
    expect(await enqueueHere(sessionId)).toEqual([]);
    expect(await stage.store.routes.sessions()).not.toContain(sessionId);
    expect((await stage.store.claims.heldBy(sessionId)).map(({ runId }) => runId)).toEqual([has?.runId]);

    expect(await stage.store.drains.resume("one", why())).toEqual({ changed: true });
    expect(await pulse(sessionId)).toBe(false);
    const { runs, draining } = await stage.store.claims.claim(request(sessionId));
    expect(runs.map(({ runId }) => runId)).toContain(waits);
    expect(draining).toBeUndefined();
  });

  it("stays drained by name, whichever process uses it, and shows author, time and reason", async () => {
    const first = await open("two");
    const given = { author: "ann", reason: "a new disk", nowMs: stage.nowMs };
    await stage.store.drains.drain("two", given);
    expect(await stage.store.drains.drain("two", why())).toMatchObject({ changed: false, held: 0 });
    await stage.store.sessions.end(first, null, stage.nowMs, "stopped");
    const about = { node: "two", sinceMs: stage.nowMs, by: "ann", why: "a new disk", runs: [] };
    expect(await stage.store.drains.list()).toEqual([{ ...about, held: null }]);
    const next = await open("two");
    expect(await pulse(next)).toBe(true);
    expect(await stage.store.drains.list()).toEqual([{ ...about, held: 0 }]);
    const entries = await stage.store.audit.list({ about: "node", named: "two" }, Number.MAX_SAFE_INTEGER, 10);
    expect(entries.map(({ who, act, why }) => ({ who, act, why }))).toEqual([
      { who: "ann", act: "drain", why: "a new disk" },
    ]);
    await stage.store.drains.resume("two", why());
    expect(await stage.store.drains.resume("two", why())).toEqual({ changed: false });
    expect(await stage.store.drains.list()).toEqual([]);
  });

  it("cannot be drained or resumed under a name that no process uses or used lately", async () => {
    await expect(stage.store.drains.drain("none", why())).rejects.toMatchObject({ code: "NODE_UNKNOWN" });
    await expect(stage.store.drains.resume("none", why())).rejects.toMatchObject({ code: "NODE_UNKNOWN" });
  });

  it("is drained even if its process takes the name at the same moment, in any order", async () => {
    const other = await stage.another();
    for (let round = 0; round < 40; round++) {
      const node = `racing-${round}`;
      // The store knows the node's name from this session, so the node can be drained before its process returns.
      await stage.store.sessions.end(await open(node), null, stage.nowMs, "stopped");
      const [sessionId] = await Promise.all([open(node), other.drains.drain(node, why())]);
      expect({ round, draining: await pulse(sessionId) }).toEqual({ round, draining: true });
    }
  });
});

describe("draining nodes", () => {
  const stage = new ApiStage();
  const nodes: Carillon[] = [];
  const begun: { node: string; runId: number }[] = [];
  const ends = new Map<number, () => void>();
  const log = recordingLog();

  beforeAll(async () => {
    await stage.open();
    for (const name of ["a", "b"]) {
      const options = { store: (await stage.server.open()).url, schema: stage.schema, name, handleSignals: false };
      const node = carillon({ ...options, concurrency: 2, log: log.log, drain: "1s" });
      node.task("work", {}, (run) => {
        begun.push({ node: name, runId: run.id });
        return new Promise<void>((resolve) => ends.set(run.id, resolve));
      });
      nodes.push(await node.start());
    }
  });
  afterAll(async () => {
    for (const end of ends.values()) end();
    await Promise.all(nodes.map((node) => node.stop()));
    await stage.close();
  });

  const atStore = () => ["--store", postgres().url, "--schema", stage.schema];
  const atServer = () => ["--server", stage.urlOf()];
  const token = () => ({ CARILLON_TOKEN: stage.tokens.operator });
  const enqueue = async (at: number) => (await (nodes[at] as Carillon).enqueue("work")).runId;
  const nodeOf = async (runId: number) => {
    await until(`run ${runId} begins`, () => begun.some((one) => one.runId === runId));
    return begun.find((one) => one.runId === runId)?.node;
  };

  it("a drained node releases its waiting runs, finishes its running ones, and takes no other until resumed", async () => {
    // Both nodes are full, and further runs wait.
    const first = await Promise.all([0, 0, 0, 0].map(enqueue));
    for (const runId of first) await nodeOf(runId);
    const its = begun.filter(({ node }) => node === "a").map(({ runId }) => runId);
    expect(its).toHaveLength(2);
    const waiting = await Promise.all([0, 0, 0].map(enqueue));

    const drained = await inProcess(["nodes", "drain", "a", "--reason", "new disk", ...atServer()], token());
    expect(drained).toMatchObject({ code: 0, stdout: "a takes no more runs\n" });
    expect(drained.stderr).toMatch(new RegExp(`still has \\d runs: work (${its.join("|")})`));
    await until("it says so", () => log.lines.some(({ message }) => message.includes("this node is drained")));
    await until("it has given back what had not begun", async () => {
      const [one] = await stage.store.drains.list();
      return one?.held === 2;
    });
    for (const { runId } of begun.filter(({ node }) => node === "b")) ends.get(runId)?.();
    const rest: number[] = [];
    for (const runId of waiting) {
      rest.push(runId);
      expect(await nodeOf(runId)).toBe("b");
      ends.get(runId)?.();
    }
    const over = await inProcess(["nodes", "drain", "a", "--wait", "--timeout", "1ms", ...atStore()]);
    expect(over).toMatchObject({ code: 1 });
    expect(over.stderr).toMatch(/TIMEOUT: a has not ended its runs within 1ms\n {2}hint: It has 2 runs: work \d+/);

    const gone = inProcess(["nodes", "drain", "a", "--wait", ...atStore()]);
    for (const runId of its) ends.get(runId)?.();
    expect(await gone).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/\na has no runs: it may be stopped\n$/),
    });
    const listed = await inProcess(["nodes", ...atStore()]);
    expect(listed.stdout).toMatch(/\ba\b.*\bdrained\b/);
    expect(listed.stderr).toMatch(/a was drained .* by .+ \(new disk\): it has no runs/);

    // The drained node claims no runs, not even those that it enqueues itself.
    const elsewhere = await enqueue(0);
    expect(await nodeOf(elsewhere)).toBe("b");
    expect(await inProcess(["nodes", "resume", "a", ...atServer()], token())).toMatchObject({
      code: 0,
      stdout: "a takes runs again\n",
    });
    const fill = await Promise.all([1, 1, 1].map(enqueue));
    const places = await Promise.all(fill.map(nodeOf));
    expect(places).toContain("a");
    for (const end of ends.values()) end();
  });

  it("a drained remote worker gets no run, and delays no other worker, until it is resumed", async () => {
    const key = await stage.key("mine", ["far"]);
    await stage.server.save(defineTask("far", { group: "far" }));
    const join = (name: string) => stage.join(key, { name, groups: ["far"], concurrency: 5 });
    const [one, two] = [await join("far-1"), await join("far-2")];
    const waiting = stage.poll(key, { session: one, want: 5, waitMs: limits.pollWaitMs });
    await stage.store.drains.drain("far-1", change(Date.now()));
    const runId = (await stage.server.enqueue("far")).runId;
    const given = await stage.poll(key, { session: two, want: 5, waitMs: limits.pollWaitMs });
    expect(given.runs.map((run) => run.runId)).toEqual([runId]);
    expect((await waiting).runs).toEqual([]);
    const next = (await stage.server.enqueue("far")).runId;
    expect((await stage.poll(key, { session: one, want: 5 })).runs).toEqual([]);

    const again = stage.poll(key, { session: one, want: 5, waitMs: limits.pollWaitMs });
    await stage.store.drains.resume("far-1", change(Date.now()));
    // The long poll ends without a run after the resume, so the worker polls again.
    await again;
    const { runs } = await stage.poll(key, { session: one, want: 5, waitMs: limits.pollWaitMs });
    expect(runs.map((run) => run.runId)).toEqual([next]);
    await stage.poll(key, { session: one, verdicts: runs.map((run) => said(run)), leave: true });
    await stage.poll(key, { session: two, verdicts: given.runs.map((run) => said(run)), leave: true });
  });

  it("an unknown name is refused with the nearest one, by store and by server", async () => {
    for (const [at, environment] of [
      [atStore(), {}],
      [atServer(), token()],
    ] as const) {
      const refused = await inProcess(["nodes", "drain", "aa", ...at], environment);
      expect(refused).toMatchObject({ code: 3, stdout: "" });
      expect(refused.stderr).toMatch(
        /^carillon: NODE_UNKNOWN: no process has the name "aa", and none had it lately; did you mean "a"\?/,
      );
    }
  });
});
