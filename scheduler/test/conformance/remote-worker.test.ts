import { createServer, type Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { GivenRun } from "../../src/api/worker-protocol.ts";
import { CarillonError } from "../../src/base/errors.ts";
import { at } from "../../src/index.ts";
import { type RemoteWorker, type RemoteWorkerOptions, worker } from "../../src/library/remote-worker.ts";
import type { Run } from "../../src/run/handler.ts";
import { StoreProxy } from "../support/proxy.ts";
import { RemoteStage, said } from "../support/remote-stage.ts";
import { recordingLog, until } from "../support/store-stage.ts";

const stage = new RemoteStage();
let key = "";
const workers: RemoteWorker[] = [];

beforeAll(async () => {
  await stage.serve();
  await stage.serve();
  key = await stage.key("mine");
  for (const name of ["echo", "slow", "deaf", "strict", "tx"]) await stage.task(name, { grace: "10m" });
  await stage.task("flaky", { retry: { attempts: 3, delay: "10ms" } });
});
afterAll(async () => {
  await Promise.all(workers.map((one) => one.stop()));
  await stage.close();
});

function make(options: RemoteWorkerOptions = {}): RemoteWorker {
  const one = worker({
    server: stage.urlOf(),
    key,
    handleSignals: false,
    log: recordingLog().log,
    drain: "10s",
    ...options,
  });
  workers.push(one);
  return one;
}
const ended = (runId: number) =>
  until(`run ${runId} has ended`, async () => (await stage.store.runs.find(runId)).endedMs !== null);
const enqueue = async (task: string, payload?: unknown, options = {}) =>
  (await stage.server.enqueue(task, payload, options)).runId;
const untilAborted = (run: Run) =>
  new Promise((_, reject) => run.signal.addEventListener("abort", () => reject(run.signal.reason)));

describe("a worker without a store", () => {
  test("gets the runs of its task's schedules, each with its own slot and payload", async () => {
    await stage.task("digest", { timeout: "1m" });
    const seen: unknown[] = [];
    const one = make({ concurrency: 1 }).task("digest", (run, payload) => {
      seen.push([run.task, run.schedule, payload]);
      return run.schedule;
    });
    await one.start();
    const due = at(Date.now() + 2_000);
    for (const tenant of [7, 8])
      await stage.server.schedules.set("digest", `tenant-${tenant}`, due, { payload: tenant });
    const own = await enqueue("digest", 0);
    const results = async () =>
      (await stage.store.runs.list({ limit: 9 }))
        .filter(({ task, state }) => task.startsWith("digest") && state === "succeeded")
        .map(({ task, result }) => `${task} ${result}`)
        .sort();
    await until("all three have ended", async () => (await results()).length === 3);
    expect(await results()).toEqual(["digest null", "digest:tenant-7 tenant-7", "digest:tenant-8 tenant-8"]);
    expect(seen[0]).toEqual(["digest", null, 0]);
    expect(seen.slice(1).sort()).toEqual([
      ["digest", "tenant-7", 7],
      ["digest", "tenant-8", 8],
    ]);
    expect((await stage.store.runs.find(own)).state).toBe("succeeded");
    await one.stop();
  });

  test("runs the tasks it has handlers for, with the same Run object as in a process with the store", async () => {
    const seen: unknown[] = [];
    const one = make({ name: "remote-1", labels: { zone: "eu" } })
      .task("echo", (run, payload) => {
        run.log.info("ding", { n: run.attempt });
        run.progress(0.5);
        seen.push([run.id, run.task, run.attempt, run.fence > 0, run.slot, run.signal.aborted]);
        return payload;
      })
      .task("flaky", (run) => {
        if (run.attempt < 3) throw new Error(`try ${run.attempt}`);
        return run.attempt;
      })
      .task("strict", { payload: z.object({ n: z.number() }) }, (_run, { n }) => n + 1)
      .task("tx", (run) => run.complete({ query: async () => ({ rows: [] }) }))
      .task("slow", untilAborted);
    await one.start();
    expect(one.node).toBe("remote-1");
    const [member] = (await stage.store.sessions.members()).members.filter(({ node }) => node === "remote-1");
    expect(member).toMatchObject({
      role: "worker",
      groups: ["default"],
      labels: { zone: "eu" },
      capacity: 100,
      pid: process.pid,
    });

    const runId = await enqueue("echo", { a: [1] });
    await ended(runId);
    expect(await stage.store.runs.find(runId)).toMatchObject({
      state: "succeeded",
      result: { a: [1] },
      node: "remote-1",
    });
    expect(seen).toEqual([[runId, "echo", 1, true, null, false]]);
    await until("its log is there", async () => (await stage.store.runs.logs(runId, 9)).length === 1);
    const flaky = await enqueue("flaky");
    await ended(flaky);
    expect(await stage.store.runs.find(flaky)).toMatchObject({ state: "succeeded", attempt: 3, result: 3 });
    const [good, bad, needy] = [
      await enqueue("strict", { n: 1 }),
      await enqueue("strict", { n: "x" }),
      await enqueue("tx"),
    ];
    await Promise.all([good, bad, needy].map(ended));
    expect(await stage.store.runs.find(good)).toMatchObject({ result: 2 });
    expect(await stage.store.runs.find(bad)).toMatchObject({ state: "failed", error: { code: "PAYLOAD_INVALID" } });
    expect(await stage.store.runs.find(needy)).toMatchObject({ state: "failed", error: { code: "STORE_NEEDED" } });
    const slow = await enqueue("slow");
    await until("it runs", async () => (await stage.store.runs.find(slow)).state === "claimed");
    expect(["stopping", "cancelled"]).toContain(await stage.server.cancel(slow, "enough"));
    await ended(slow);
    expect((await stage.store.runs.find(slow)).state).toBe("cancelled");
    await one.stop();
    const left = (await stage.store.sessions.members()).members.map(({ node }) => node);
    expect(left).not.toContain("remote-1");
  });

  test("an error thrown by a handler fails the run, even with the code of a stopping worker", async () => {
    const one = make().task("flaky", () => {
      throw new CarillonError("STOPPED", "this Carillon has been stopped");
    });
    await one.start();
    const runId = await enqueue("flaky");
    await ended(runId);
    expect(await stage.store.runs.find(runId)).toMatchObject({
      state: "failed",
      attempt: 3,
      error: { code: "STOPPED" },
    });
    await one.stop();
  });

  test("with a clock an hour off starts each run when it is due by the store's clock", async () => {
    const realNow = Date.now;
    for (const offMs of [3_600_000, -3_600_000]) {
      Date.now = () => realNow() + offMs;
      let one: RemoteWorker;
      try {
        const started = new Map<number, number>();
        one = make().task("echo", (run) => void started.set(run.id, realNow()));
        await one.start();
        const dueMs = realNow() + 1_500;
        Date.now = realNow;
        const runId = await enqueue("echo", null, { at: new Date(dueMs) });
        await ended(runId);
        const record = await stage.store.runs.find(runId);
        expect(started.get(runId)).toBeGreaterThanOrEqual(record.dueMs - 20);
        // The worker reports the start as an age, so the time may be off by the duration of the request and its reply.
        expect(record.startedMs).toBeGreaterThanOrEqual(record.dueMs - 1_000);
        // By the worker's clock the time would be off by an hour; a busy machine delays it by some seconds.
        expect(record.startedMs).toBeLessThan(record.dueMs + 600_000);
      } finally {
        Date.now = realNow;
      }
      await one.stop();
    }
  });

  test("that stops finishes running runs, releases the others, and repeats nothing", async () => {
    const starts: number[] = [];
    const held: Run[] = [];
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const one = make({ claimAhead: "60s" }).task("slow", async (run) => {
      starts.push(run.id);
      held.push(run);
      await gate;
      return "done";
    });
    await one.start();
    const runIds: number[] = [];
    for (let i = 0; i < 6; i++) runIds.push(await enqueue("slow", null, i < 2 ? {} : { in: "40s" }));
    const claimed = async (count: number) => {
      const rows = await stage.rows<{ count: number }>("select count(*) from $s.run where state = 3");
      return rows[0]?.count === count;
    };
    await until("two run, and four are claimed ahead", async () => starts.length === 2 && (await claimed(6)));
    const stopped = one.stop();
    await until("the rest is given back", () => claimed(2));
    expect(held.every(({ signal }) => !signal.aborted)).toBe(true);
    release();
    await stopped;
    const records = await Promise.all(runIds.map((runId) => stage.store.runs.find(runId)));
    expect(records.filter(({ state }) => state === "succeeded").map(({ runId }) => runId)).toEqual(starts);
    expect(records.filter(({ state }) => state === "ready")).toHaveLength(4);
    expect(starts).toHaveLength(2);
    await Promise.all(records.map(({ state, runId }) => (state === "ready" ? stage.server.cancel(runId) : null)));
  });

  test("continues at another server when one hangs or answers are cut off, and nothing runs twice", async () => {
    const proxy = await StoreProxy.before(stage.urlOf());
    const starts: number[] = [];
    const one = make({
      server: [proxy.url, stage.urlOf(stage.servers[1])],
      sessionTimeout: "6s",
    }).task("echo", async (run) => {
      starts.push(run.id);
      await sleep(5);
    });
    await one.start();
    const runIds: number[] = [];
    for (let round = 0; round < 8; round++) {
      for (let i = 0; i < 5; i++) runIds.push(await enqueue("echo"));
      await sleep(30);
      if (round % 3 === 0) proxy.cut();
      if (round === 4) proxy.hang();
      if (round === 6) proxy.heal();
    }
    await Promise.all(runIds.map(ended));
    await one.stop();
    await proxy.close();
    expect(starts.toSorted((a, b) => a - b)).toEqual(runIds);
    const states = await Promise.all(runIds.map(async (runId) => (await stage.store.runs.find(runId)).state));
    expect(new Set(states)).toEqual(new Set(["succeeded"]));
  });

  test("whose session was ended rejoins with the claims it still has", async () => {
    let aborted = 0;
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const one = make({ name: "phoenix" }).task("slow", async (run) => {
      run.signal.addEventListener("abort", () => aborted++);
      await released;
      return "done";
    });
    await one.start();
    const runId = await enqueue("slow");
    await until("its start is reported", async () => (await stage.store.runs.find(runId)).startedMs !== null);
    const sessionOf = async () =>
      (await stage.store.sessions.members()).members.find(({ node }) => node === "phoenix")?.sessionId;
    const former = (await sessionOf()) as number;
    await stage.store.sessions.end(former, null, Date.now(), "test");
    await until("it to have joined anew", async () => ((await sessionOf()) ?? former) !== former);
    release();
    await ended(runId);
    expect(await stage.store.runs.find(runId)).toMatchObject({ state: "succeeded", attempt: 1, result: "done" });
    expect(aborted).toBe(0);
    await one.stop();
  });
});

describe("a worker that cannot start", () => {
  test("reports the reason", async () => {
    expect(() => worker({ key })).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    expect(() => worker({ server: stage.urlOf(), key, claimAhead: "1h" })).toThrow(
      expect.objectContaining({ code: "OPTION_INVALID" }),
    );
    expect(() => worker({ server: "ftp://x", key })).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    expect(() => make({ sessionTimeout: "2m" })).toThrow(
      expect.objectContaining({ code: "OPTION_INVALID", message: expect.stringContaining("sessionTimeout") }),
    );
    expect(() => worker({ server: stage.urlOf(), key: "letmein" })).toThrow(
      expect.objectContaining({ code: "KEY_UNKNOWN" }),
    );
    expect(() =>
      make()
        .task("a", () => 1)
        .task("a", () => 1),
    ).toThrow(expect.objectContaining({ code: "TASK_DUPLICATE" }));
    await expect(make().start()).rejects.toMatchObject({ code: "OPTION_INVALID" });
    const forbidden = make({ groups: ["vault"] }).task("a", () => 1);
    await expect(forbidden.start()).rejects.toMatchObject({ code: "KEY_FORBIDDEN" });
    const wrong = key.endsWith("A") ? `${key.slice(0, -1)}Q` : `${key.slice(0, -1)}A`;
    await expect(
      make({ key: wrong })
        .task("a", () => 1)
        .start(),
    ).rejects.toMatchObject({ code: "KEY_UNKNOWN" });
    const nobody = make({ server: "http://127.0.0.1:9", failFast: true }).task("a", () => 1);
    await expect(nobody.start()).rejects.toMatchObject({ code: "SERVER_UNREACHABLE" });
  });

  test("a server that cannot listen reports it, and refuses a publicly reachable address without a proxy", async () => {
    const taken: Server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => taken.once("listening", resolve));
    const { port } = taken.address() as { port: number };
    const { carillon } = await import("../../src/library/carillon.ts");
    const { postgres } = await import("../support/servers.ts");
    const options = { store: postgres().url, schema: stage.schema, worker: false, handleSignals: false };
    const one = carillon({ ...options, listen: `127.0.0.1:${port}` });
    await expect(one.start()).rejects.toMatchObject({ code: "LISTEN_FAILED" });
    const members = async () => (await (await one.open()).store.sessions.members()).members.map(({ node }) => node);
    expect(await members(), "what could not start is no node").not.toContain(one.node);
    await new Promise((resolve) => taken.close(resolve));
    await one.start();
    expect(await members()).toContain(one.node);
    await one.stop();
    for (const listen of ["0.0.0.0:0", "[::]:7373", "10.0.0.7:80", "node.example:7373"])
      expect(() => carillon({ ...options, listen })).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    for (const listen of ["nowhere", "127.0.0.1:99999", ""])
      expect(() => carillon({ ...options, listen, behindProxy: true })).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID" }),
      );
    expect(carillon({ ...options, listen: "0.0.0.0:0", behindProxy: true }).listening).toBe(null);
    for (const one of ["", "proxy.example", "10.0.0.0/33", "10.0.0.0/", "0.0.0.0/0", "::/0", "::1/129", "loopback"])
      expect(() => carillon({ ...options, behindProxy: true, trustedProxies: [one] })).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID", path: "trustedProxies" }),
      );
    expect(() => carillon({ ...options, trustedProxies: ["10.0.3.7"] }), "where none is believed").toThrow(
      expect.objectContaining({ code: "OPTION_INVALID", path: "trustedProxies" }),
    );
  });

  test("a key's name can be used once, and revoking an unknown key is an error", async () => {
    await expect(stage.key("mine")).rejects.toMatchObject({ code: "KEY_NAME_TAKEN" });
    await expect(stage.store.workers.revokeKey("none", { author: "test", reason: "", nowMs: 1 })).rejects.toMatchObject(
      { code: "KEY_NAME_UNKNOWN" },
    );
    const [listed] = (await stage.store.workers.keys()).filter(({ name }) => name === "mine");
    expect(JSON.stringify(listed)).not.toContain("hash");
  });
});

test("a worker whose key is revoked stops its runs and itself, and logs the reason", async () => {
  const { log, lines } = recordingLog();
  await stage.task("guarded", { onWorkerLost: "fail" });
  let told: unknown;
  let begun = false;
  const one = make({ key: await stage.key("brief"), sessionTimeout: "3s", log }).task("guarded", async (run) => {
    begun = true;
    await untilAborted(run).catch((reason) => {
      told = reason;
      throw reason;
    });
  });
  await one.start();
  const runId = await enqueue("guarded");
  await until("it runs", () => begun);
  await stage.store.workers.revokeKey("brief", { author: "test", reason: "", nowMs: Date.now() });
  await until("the handler is told", () => told !== undefined);
  expect(told).toMatchObject({ code: "SESSION_LOST" });
  await expect(one.ended()).rejects.toMatchObject({ code: "KEY_UNKNOWN", message: "the worker key brief was revoked" });
  expect(lines.find(({ level }) => level === "error")).toMatchObject({
    message: "the worker key brief was revoked; this worker stops, and what it runs is taken back",
    fields: { code: "KEY_UNKNOWN", hint: expect.stringContaining("must stop") },
  });
  await ended(runId);
  expect(await stage.store.runs.find(runId)).toMatchObject({ state: "failed", error: { code: "WORKER_LOST" } });
  await one.stop();
});

test("a server does not return runs that its worker got from another server and has finished", async () => {
  const session = await stage.join(key, { tasks: ["echo"] });
  const other = stage.servers[1];
  for (const payload of ["one", "two"]) await enqueue("echo", payload);
  const claimed = (await stage.poll(key, { session, want: 2 }, other)).runs;
  expect(claimed).toHaveLength(2);
  // The first server, which has claimed neither run, reads both claims from the store, and offers one because the worker wants one.
  let offered: GivenRun[] = [];
  await until("the first server offers one", async () => {
    offered = (await stage.poll(key, { session, want: 1, waitMs: 250 })).runs;
    return offered.length > 0;
  });
  const [done] = claimed.filter(({ fence }) => fence !== offered[0]?.fence) as [GivenRun];
  await stage.poll(key, { session, verdicts: [said(done)] }, other);
  expect((await stage.poll(key, { session, want: 1 })).runs).toEqual([]);
  await stage.poll(key, { session, verdicts: offered.map((run) => said(run)), leave: true });
});
