import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { GivenRun } from "../../src/api/worker-protocol.ts";
import { limits } from "../../src/base/limits.ts";
import { type RemoteWorker, worker } from "../../src/library/remote-worker.ts";
import type { Run } from "../../src/run/handler.ts";
import { RemoteStage, said } from "../support/remote-stage.ts";
import { recordingLog, until } from "../support/store-stage.ts";

const stage = new RemoteStage();
let key = "";
const workers: RemoteWorker[] = [];

beforeAll(async () => {
  await stage.serve();
  await stage.serve();
  key = await stage.key("mine");
  await stage.task("pinned", { route: { pin: "chosen" } });
  await stage.task("parts", { route: { shards: 4 } });
  await stage.task("loaded", { route: "least-loaded" });
  await stage.task("old");
  await stage.task("young");
  await stage.task("asks", { onWorkerLost: "ask" });
  await stage.task("reads");
});
afterAll(async () => {
  await Promise.all(workers.map((one) => one.stop()));
  await stage.close();
});

const recordOf = (runId: number) => stage.store.runs.find(runId);
const enqueue = async (task: string, payload: unknown = null) => (await stage.server.enqueue(task, payload)).runId;
const ended = (runId: number) => until(`run ${runId} has ended`, async () => (await recordOf(runId)).endedMs !== null);
const addressed = (runId: number, node: string) =>
  until(`run ${runId} is addressed to ${node}`, async () => (await recordOf(runId)).addressee === node);
async function make(name: string, tasks: Record<string, (run: Run) => unknown>, concurrency = 10) {
  const { log } = recordingLog();
  const one = worker({ server: stage.urlOf(), key, name, concurrency, handleSignals: false, log, drain: "5s" });
  for (const [task, handler] of Object.entries(tasks)) one.task(task, handler);
  workers.push(one);
  return one.start();
}

test("a run addressed to a session reaches only that session, whether its poll waits or not, at any server", async () => {
  const chosen = await stage.join(key, { name: "chosen" });
  const another = await stage.join(key);
  const waiting = stage.poll(key, { session: chosen, want: 2, waitMs: limits.pollWaitMs });
  const idle = stage.poll(key, { session: another, want: 2, waitMs: 3_000 });
  const runId = await enqueue("pinned");
  const { runs } = await waiting;
  expect(runs.map((run) => run.runId)).toEqual([runId]);
  await stage.poll(key, { session: chosen, verdicts: runs.map((run) => said(run)) });
  expect((await recordOf(runId)).state).toBe("succeeded");

  const quiet = await enqueue("pinned");
  await addressed(quiet, "chosen");
  expect((await stage.poll(key, { session: another, want: 2 })).runs).toEqual([]);
  // The second server had not cached the session when the run was addressed to it.
  const found = await stage.poll(key, { session: chosen, want: 2 }, stage.second);
  expect(found.runs.map((run) => run.runId)).toEqual([quiet]);
  await stage.poll(key, { session: chosen, verdicts: found.runs.map((run) => said(run)) });
  expect((await idle).runs).toEqual([]);
  for (const session of [chosen, another]) await stage.poll(key, { session, leave: true });
});

test("a group's limit holds for remote workers, at every server, and the next run begins as soon as one ends", async () => {
  await stage.task("few", { group: "few" });
  await stage.server.limitGroup("few", 2);
  const own = await stage.key("few", ["few"]);
  const sessions = [await stage.join(own, { groups: ["few"] }), await stage.join(own, { groups: ["few"] })] as const;
  for (let i = 0; i < 5; i++) await enqueue("few");
  const first = await stage.poll(own, { session: sessions[0], want: 5, waitMs: limits.pollWaitMs });
  expect(first.runs).toHaveLength(2);
  expect((await stage.poll(own, { session: sessions[1], want: 5 }, stage.second)).runs).toEqual([]);
  const waiting = stage.poll(own, { session: sessions[1], want: 5, waitMs: limits.pollWaitMs }, stage.second);
  await stage.poll(own, { session: sessions[0], verdicts: first.runs.slice(0, 1).map((run) => said(run)) });
  const { runs } = await waiting;
  expect(runs).toHaveLength(1);
  await stage.poll(own, { session: sessions[1], verdicts: runs.map((run) => said(run)), leave: true }, stage.second);
  const rest = first.runs.slice(1).map((run) => said(run));
  await stage.poll(own, { session: sessions[0], verdicts: rest, leave: true });
  await stage.server.limitGroup("few", null);
});

test("unclaimed runs addressed to a stopping worker go to other workers", async () => {
  const tasks = ["loaded"];
  const stopping = await stage.join(key, { name: "stopping", tasks, concurrency: 1 });
  const runId = await enqueue("loaded");
  await addressed(runId, "stopping");
  await stage.poll(key, { session: stopping, draining: true });
  const next = await stage.join(key, { name: "next", tasks });
  const { runs } = await stage.poll(key, { session: next, want: 1, waitMs: limits.pollWaitMs });
  expect(runs.map((run) => run.runId)).toEqual([runId]);
  await stage.poll(key, { session: next, verdicts: runs.map((run) => said(run)), leave: true });
  await stage.poll(key, { session: stopping, leave: true });
});

test("a run is addressed only to a worker that lists its task, and each shard reports its index", async () => {
  const seen: Run["shard"][] = [];
  const part = (run: Run) => void seen.push(run.shard);
  const other = await stage.join(key, { name: "other", tasks: ["young"] });
  const [one, two] = [await make("one", { parts: part }), await make("two", { parts: part })];
  await enqueue("parts");
  await until("all parts have run", () => seen.length === 4);
  expect(seen.map((shard) => shard?.index).sort()).toEqual([0, 1, 2, 3]);
  expect(seen.every((shard) => shard?.total === 4)).toBe(true);
  expect((await stage.poll(key, { session: other, want: 4, leave: true })).runs).toEqual([]);
  await Promise.all([one.stop(), two.stop()]);
});

test("fairness between tasks: a run behind thousands of another task's older runs does not wait for them", async () => {
  const { taskId, groupId } = await stage.store.tasks.byName("old");
  const nowMs = Date.now();
  await stage.rows(
    `insert into $s.run (id, due_ms, created_ms, task_id, group_id, version, state, priority, source)
     select nextval('$s.run_id'), $1::bigint - 600000 + i, $1, $2, $3, 1, 2, 5, 2 from generate_series(1, 5000) i`,
    [nowMs, taskId, groupId],
  );
  let olds = 0;
  const old = async () => {
    olds++;
    await sleep(20);
  };
  let before = 0;
  const young = () => {
    before = olds;
  };
  const one = await make("full", { old, young }, 2);
  await until("it is busy", () => olds > 10);
  const runId = await enqueue("young");
  await ended(runId);
  // If runs started in the order of their due times, all runs of "old" would start before the run of "young".
  expect(before).toBeGreaterThan(0);
  expect(before).toBeLessThan(4_000);
  const stopped = one.stop();
  await stage.server.remove("old");
  await stopped;
});

test("a run interrupted by its worker's stop waits for a decision with onWorkerLost: ask", async () => {
  const session = await stage.join(key, { tasks: ["asks"] });
  const run = await stage.claimed(key, session, "asks");
  const verdicts = [said(run, { outcome: "stopped" })];
  for (const server of [stage.server, stage.second])
    expect((await stage.poll(key, { session, verdicts }, server)).refused).toEqual([]);
  expect((await recordOf(run.runId)).state).toBe("undecided");
  await stage.server.decide(run.runId, "retry");
  const { runs } = await stage.poll(key, { session, want: 1, waitMs: limits.pollWaitMs });
  expect(runs).toMatchObject([{ runId: run.runId, attempt: 2, shard: null, state: null }]);
  await stage.poll(key, { session, verdicts: [said(runs[0] as GivenRun)], leave: true });
});

test("the saved state of a run is passed on to another worker", async () => {
  const session = await stage.join(key, { name: "first", tasks: ["reads"] });
  const run = await stage.claimed(key, session, "reads");
  // A process with the store saves the state in the same way.
  expect(await stage.store.flow.saveState(run.runId, run.fence, '{"page":7}')).toBe(true);
  await stage.poll(key, { session, verdicts: [said(run, { outcome: "stopped" })], leave: true });
  const reader = await make("reader", { reads: (again) => again.state });
  await ended(run.runId);
  expect(await recordOf(run.runId)).toMatchObject({ state: "succeeded", attempt: 2, result: { page: 7 } });
  await reader.stop();
});
