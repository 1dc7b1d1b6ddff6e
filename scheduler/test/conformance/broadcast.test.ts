import { afterEach, describe, expect, it } from "vitest";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import { type TestTower, testTower } from "../../src/testing/testing.ts";
import { postgres } from "../support/servers.ts";
import { settlement, succeededVerdict } from "../support/store-stage.ts";

let tower: TestTower;
afterEach(() => tower.close());

const opened = async () => (await tower.carillon.open()).store;
const nowMs = () => tower.now().getTime();
const find = async (runId: number) => (await opened()).runs.find(runId);

/** Registers a worker that is only a session, in the group of the broadcast. @returns the session's id */
async function join(node: string): Promise<number> {
  const identity = { node, role: "worker", host: "here", pid: 1, version: "0", timeoutMs: 1e9 } as const;
  const session = await (await opened()).sessions.open({ ...identity, groups: ["members"], capacity: 5 }, nowMs());
  return (session as { sessionId: number }).sessionId;
}
const leave = async (sessionId: number) => (await opened()).sessions.end(sessionId, null, nowMs(), "silent");

/** Claims the runs addressed to the session and reports them as started. */
async function claim(sessionId: number): Promise<ClaimedRun[]> {
  const { claims } = await opened();
  const request = { sessionId, groupIds: [-sessionId], exceptTaskIds: [], untilMs: nowMs(), limit: 10, nowMs: nowMs() };
  const { runs } = await claims.claim(request);
  const started = runs.map(({ runId, fence }) => ({ runId, fence, startedMs: nowMs(), progress: null }));
  await claims.report(sessionId, started);
  return runs;
}
const settle = async (sessionId: number, run: ClaimedRun, verdict: Verdict = succeededVerdict) =>
  (await opened()).claims.settle(sessionId, [settlement(run, verdict, nowMs())], nowMs());

/** Advances time in steps of one heartbeat (30 s), so that the loss of a worker is detected on the way. */
async function pass(minutes: number): Promise<void> {
  for (let i = 0; i < 2 * minutes; i++) await tower.advance("30s");
}

/** Starts a broadcast to two members. @returns the session of each member, and the run that it has claimed */
async function broadcast(options: TaskOptions = {}) {
  tower = await testTower({
    store: postgres().direct,
    now: "2030-01-01T00:00:00Z",
    groups: ["default"],
    tasks(carillon) {
      carillon.task("reload", { group: "members", route: "broadcast", grace: "2m", ...options }, () => undefined);
      carillon.task(
        "alarm",
        { after: { tasks: "reload", on: "failure" } },
        async (run) => (await run.inputs())[0]?.runId,
      );
    },
  });
  const [a, b] = [await join("a"), await join("b")];
  await tower.carillon.enqueue("reload");
  await tower.advance("1s");
  const [ofA] = (await claim(a)) as [ClaimedRun];
  const [ofB] = (await claim(b)) as [ClaimedRun];
  return { a, b, ofA, ofB };
}

describe("a broadcast run whose worker dies while running it", () => {
  it("fails with a dead letter naming the worker if it is not back within the grace, and followers begin", async () => {
    const { a, b, ofA, ofB } = await broadcast();
    await settle(a, ofA);
    await leave(b);
    await pass(6);
    const part = await find(ofB.runId);
    expect(part).toMatchObject({ state: "failed", error: { code: "WORKER_LOST" } });
    expect((part.error as { message: string }).message).toMatch(/the worker "b" left before it had finished/);
    const store = await opened();
    expect(await store.runs.attempts(ofB.runId)).toMatchObject([{ attempt: 1, outcome: "lost", node: "b" }]);
    expect(await store.deadLetters.letters({ task: "reload" }, 10)).toMatchObject([
      { runId: ofB.runId, state: "open" },
    ]);
    const alarms = await store.runs.list({ task: "alarm", limit: 10 });
    expect(alarms).toHaveLength(1);
    expect((await find(alarms[0]?.runId as number)).result).toBe(ofB.runId);
    expect((await find(ofA.runId)).state).toBe("succeeded");
  });

  it.each([
    ["before its claims are taken back", 1],
    ["after they were taken back, and before the part is given up", 3],
  ])("is retried by that worker when it returns under its name, %s", async (_when, minutes) => {
    const { a, b, ofA, ofB } = await broadcast();
    await settle(a, ofA);
    await leave(b);
    await pass(minutes);
    expect((await find(ofB.runId)).state).toBe(minutes === 1 ? "claimed" : "ready");
    const back = await join("b");
    await pass(3);
    const [again] = (await claim(back)) as [ClaimedRun];
    expect(again).toMatchObject({ runId: ofB.runId, attempt: 2 });
    await settle(back, again);
    await pass(10);
    expect((await find(ofB.runId)).state).toBe("succeeded");
    expect(await (await opened()).deadLetters.letters({ task: "reload" }, 10)).toEqual([]);
  });

  it("fails too if it is waiting for its next attempt when the worker leaves", async () => {
    const { b, ofB } = await broadcast();
    await settle(b, ofB, { kind: "retry", dueMs: nowMs() + 600_000, error: '{"message":"no"}' });
    await leave(b);
    await pass(10);
    expect((await find(ofB.runId)).state, "it is not due again before").toBe("ready");
    await pass(4);
    expect((await find(ofB.runId)).state).toBe("failed");
  });

  const error = { code: "WORKER_LOST", message: 'the worker "b" fell silent while it had this run' };
  it.each([
    ["fail", { state: "failed", error }],
    ["ask", { state: "undecided", error: null }],
  ] as const)("is decided by onWorkerLost: %s", async (onWorkerLost, becomes) => {
    const { b, ofB } = await broadcast({ onWorkerLost });
    await leave(b);
    await pass(6);
    expect(await find(ofB.runId)).toMatchObject(becomes);
  });

  it("is cancelled if the worker had not started it", async () => {
    const { b } = await broadcast();
    await tower.carillon.enqueue("reload");
    await tower.advance("1s");
    const parts = await (await opened()).runs.list({ task: "reload", states: ["ready"], limit: 10 });
    const ofB = parts.find(({ addressee }) => addressee === "b");
    await leave(b);
    await pass(6);
    expect(await find(ofB?.runId as number)).toMatchObject({
      state: "cancelled",
      error: { message: "its worker left before it began" },
    });
  });
});
