import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RemoteWorker, type RemoteWorkerOptions, worker } from "../../src/library/remote-worker.ts";
import type { Run } from "../../src/run/handler.ts";
import { ApiStage } from "../support/api-stage.ts";
import { RemoteStage } from "../support/remote-stage.ts";
import { recordingLog, until } from "../support/store-stage.ts";

describe("policies of a single run, over the API", () => {
  const stage = new ApiStage();
  beforeAll(async () => {
    await stage.open();
    await stage.task("work", { group: "nobody" });
  });
  afterAll(() => stage.close());

  test("are set as in code, shown as set, and validated", async () => {
    const at = new Date(Date.now() + 3_600_000).toISOString();
    const given = { retry: { attempts: 3, delay: "2s" }, runTimeout: "1m", expiresAt: at };
    const { run } = await stage.client("operator").runTask({ task: "work", ...given } as never);
    expect(await stage.client("viewer").getRun({ run })).toMatchObject({
      overrides: { retry: { attempts: 3, delay: "2s" }, runTimeout: "1m" },
      expires: at,
    });
    const { runs } = await stage.client("operator").enqueueRuns({
      runs: [
        { task: "work", retry: 2, runTimeout: null },
        { task: "work", in: "1h", expiresIn: "1m" },
      ],
    } as never);
    const [first, second] = await Promise.all(runs.map(({ run }) => stage.client("viewer").getRun({ run })));
    expect(first).toMatchObject({ overrides: { retry: 2, runTimeout: null }, expires: null });
    expect(second?.overrides).toBeNull();
    expect(Date.parse(second?.expires as string) - Date.parse(second?.due as string)).toBe(60_000);
    const wrong = (options: object) => stage.client("operator").runTask({ task: "work", ...options } as never);
    await expect(wrong({ retry: 0 })).rejects.toMatchObject({ code: "OPTION_INVALID", path: "retry.attempts" });
    await expect(wrong({ runTimeout: "soon" })).rejects.toMatchObject({ code: "DURATION_INVALID" });
    await expect(wrong({ expiresIn: "1m", expiresAt: at })).rejects.toMatchObject({ code: "OPTION_INVALID" });
  });
});

describe("policies of a single run, on a worker without a store", () => {
  const stage = new RemoteStage();
  const workers: RemoteWorker[] = [];
  let key = "";
  beforeAll(async () => {
    await stage.serve();
    key = await stage.key("mine");
    await stage.task("work", { timeout: "10m" });
  });
  afterAll(async () => {
    await Promise.all(workers.map((one) => one.stop()));
    await stage.close();
  });
  const make = (options: RemoteWorkerOptions = {}) => {
    const common = { server: stage.urlOf(), key, handleSignals: false, log: recordingLog().log, drain: "10s" } as const;
    const one = worker({ ...common, ...options });
    workers.push(one);
    return one;
  };
  const ended = async (runId: number) => {
    await until(`run ${runId} has ended`, async () => (await stage.store.runs.find(runId)).endedMs !== null);
    return stage.store.runs.find(runId);
  };

  test("decide its attempts and their timeout, and a full worker starts no expired run", async () => {
    const seen: unknown[] = [];
    let end: () => void = () => undefined;
    const one = make({ concurrency: 1 }).task("work", async (run: Run, payload) => {
      seen.push([payload, run.attempt]);
      if (payload === "waits") await new Promise<void>((resolve) => (end = resolve));
      if (payload === "throws") throw new Error("no");
      if (payload === "hangs")
        await new Promise((_, reject) => run.signal.addEventListener("abort", () => reject(run.signal.reason)));
    });
    await one.start();
    const enqueue = (payload: string, options: object) => stage.server.enqueue("work", payload, options);
    const throws = await enqueue("throws", { retry: { attempts: 2, delay: "10ms" } });
    expect(await ended(throws.runId)).toMatchObject({ state: "failed", attempt: 2 });
    const hangs = await enqueue("hangs", { runTimeout: "50ms" });
    expect(await ended(hangs.runId)).toMatchObject({
      state: "failed",
      error: { message: expect.stringContaining("50 ms") },
    });
    await enqueue("waits", {});
    await until("it has begun", async () => seen.length === 4);
    const late = await enqueue("late", { expiresIn: "200ms" });
    await until("it has expired", async () => Date.now() > (await stage.store.runs.find(late.runId)).dueMs + 400);
    end();
    expect(await ended(late.runId)).toMatchObject({ state: "skipped", attempt: 0 });
    expect(seen).toEqual([
      ["throws", 1],
      ["throws", 2],
      ["hangs", 1],
      ["waits", 1],
    ]);
  });
});
