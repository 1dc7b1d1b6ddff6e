/**
 * These tests take over a minute: most of them run both in a thread and in a process. Each thread or process loads the tasks, and
 * some crash and are replaced.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import type { Carillon, Handler, Isolate, Task, TaskOptions } from "carillon";
import { worker } from "carillon/worker";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { handlerFile, IsolatedStage, isAlive, type Row } from "../support/isolated.ts";
import { RemoteStage } from "../support/remote-stage.ts";
import { until } from "../support/store-stage.ts";

interface Told {
  act: string;
  [more: string]: unknown;
}
const module = handlerFile(".mjs");
const places = ["thread", "process"] as const;

let stage: IsolatedStage;
beforeEach(() => {
  stage = new IsolatedStage();
});
afterEach(() => stage.close());

const isolated = (tower: Carillon, isolate: Isolate, more: TaskOptions = {}, name = "isolated"): Task<Told> =>
  tower.task<Told>(name, { isolate, ...more }, module);

describe.each(places)("a handler in a %s of its own", (place) => {
  it("has all features of a handler without isolation", async () => {
    const plain = (await import(module.href)).default as Handler<Told>;
    const tower = stage.make();
    const retry = { attempts: 2, delay: 1 };
    const tasks = [
      tower.task<Told>("plain", { retry, slotPayload: null }, plain),
      isolated(tower, place, { retry, slotPayload: null }),
    ];
    tower.task("child", {}, (_run, payload) => payload);
    tower.task("joins", {}, (run, same) => plain(run, { act: "joins", same }));
    await tower.start();
    await stage.rows("create table $s.own (run_id bigint)");
    const { url, schema } = stage;
    const told: Told[] = [
      { act: "fields", more: [1, null, "x"] },
      { act: "tells" },
      { act: "keeps" },
      { act: "spawns" },
      { act: "goesOn", left: 2 },
      { act: "putsOff" },
      { act: "completes", url, schema },
      { act: "completes", url, schema, rollBack: true },
      { act: "locks", url, schema },
      ...["asksUnknown", "throwsOwn", "throwsCoded", "throwsText", "throwsObject", "throwsCircle"].map((act) => ({
        act,
      })),
      ...["returnsMap", "returnsMuch", "returnsNothing"].map((act) => ({ act })),
    ];
    const lines: Record<string, number> = { tells: 2, returnsMap: 1, returnsMuch: 1 };
    for (const [at, payload] of told.entries()) {
      const found: unknown[] = [];
      for (const task of tasks) {
        const { runId } = await task.enqueue(payload, { key: `key ${at}` });
        const row = await stage.ended(runId);
        // The log lines are stored independently of the end of the run, perhaps later.
        const logged = async () => (await stage.logs(runId)).length >= (lines[payload.act] ?? 0);
        await until(`the lines of ${payload.act}`, logged);
        found.push(comparable(runId, task.name, row, await stage.logs(runId)));
      }
      expect(found[1], payload.act).toEqual(found[0]);
    }
    const results = async (which: string) =>
      (
        await stage.rows<{ result: unknown }>(
          `select result from $s.run_history h join $s.task t on t.id = h.task_id where ${which}`,
        )
      ).map(({ result }) => result);
    const both = async (which: string, result: unknown) => {
      await until(`both of ${which}`, async () => (await results(which)).length === 2);
      expect(await results(which)).toEqual([result, result]);
    };
    const child = (n: number) => ({ task: "child", outcome: "succeeded", result: { n } });
    await both("t.name = 'joins'", { same: true, inputs: [child(1), child(2)] });
    await both("payload->>'act' = 'goesOn' and payload->>'left' = '0'", { state: { left: 1 } });
    expect(await stage.rows("select from $s.own")).toHaveLength(2);
  });

  it("runs separately, and does not block the event loop while it computes", async () => {
    const tower = stage.make({ concurrency: 4 });
    const task = isolated(tower, place);
    const other = tower.task("other", {}, () => undefined);
    await tower.start();
    const where = (await stage.ended((await task.enqueue({ act: "where" })).runId)).result;
    expect(where).toMatchObject(
      place === "thread" ? { pid: process.pid, isMainThread: false } : { isMainThread: true },
    );
    if (place === "process") expect(where).not.toMatchObject({ pid: process.pid });
    const { runId } = await task.enqueue({ act: "begins", ms: 600_000 });
    await stage.said(runId, "begun");
    for (let made = 0; made < 20; made++)
      expect(await stage.ended((await other.enqueue()).runId)).toMatchObject({ outcome: "succeeded" });
    expect(await stage.rows("select from $s.run where id = $1", [runId])).toHaveLength(1);
    await tower.cancel(runId);
    expect((await stage.ended(runId)).outcome).toBe("cancelled");
  });

  it("is aborted, and is ended by force if it ignores that", async () => {
    const tower = stage.make({ concurrency: 1 });
    const isolate: Isolate = { in: place, pool: 1, killAfter: "50ms" };
    const task = isolated(tower, isolate, { timeout: "300ms" });
    const obedient = isolated(tower, { in: place, killAfter: "10s" }, { timeout: "300ms" }, "obedient");
    const patient = isolated(tower, isolate, {}, "patient");
    await tower.start();
    const obeys = (await obedient.enqueue({ act: "obeys" })).runId;
    expect(await stage.ended(obeys)).toMatchObject({ outcome: "failed", error: { code: "TIMEOUT" } });
    expect(await stage.said(obeys, "obeyed")).toEqual({ reason: "TIMEOUT" });
    const before = (await stage.ended((await patient.enqueue({ act: "where" })).runId)).result;
    const computes = (await task.enqueue({ act: "computes", ms: 120_000 })).runId;
    const next = (await patient.enqueue({ act: "where" })).runId;
    const { outcome, error } = await stage.ended(computes);
    expect({ outcome, error }).toMatchObject({
      outcome: "failed",
      error: {
        code: "TIMEOUT",
        message: "the attempt took longer than 300 ms",
        thrown: expect.stringContaining(`its ${place} was ended`),
      },
    });
    // The next run uses the only slot, so it can only run in a new thread or process.
    const after = await stage.ended(next);
    expect(after.outcome).toBe("succeeded");
    expect(after.result).not.toEqual(before);
    const { pid } = before as { pid: number };
    if (place === "process") await until("the process to be gone", () => !isAlive(pid));
  });

  it("fails alone when it crashes, with an error that names the cause, and the next run gets a new host", async () => {
    const tower = stage.make();
    const task = isolated(tower, { in: place, memoryMb: 96, killAfter: "10s" });
    await tower.start();
    const innocent = (await task.enqueue({ act: "obeys" })).runId;
    const crashes: [act: string, code: string, message: RegExp][] = [
      ["exits", "HANDLER_CRASHED", /exited with code 7$/],
      ["timer", "HANDLER_CRASHED", /by an error that nothing caught: out of a timer$/],
      ["fills", "HANDLER_MEMORY", /needed more memory than 96 MB$/],
    ];
    if (place === "process") {
      crashes.push(["aborts", "HANDLER_CRASHED", /was ended by SIGABRT$/]);
      crashes.push(["killed", "HANDLER_CRASHED", /was ended by SIGKILL$/]);
    }
    for (const [act, code, message] of crashes) {
      const { runId } = await task.enqueue({ act });
      const { outcome, error } = await stage.ended(runId);
      expect({ outcome, error }, act).toMatchObject({
        outcome: "failed",
        error: { code, message: expect.stringMatching(message) },
      });
      if (act === "timer")
        expect(await stage.said(runId, "an error that the handler did not catch")).toMatchObject({
          error: { code: "E_OWN", stack: expect.stringContaining("isolated.mjs") },
        });
    }
    expect((await stage.ended((await task.enqueue({ act: "where" })).runId)).outcome).toBe("succeeded");
    await tower.cancel(innocent);
    expect((await stage.ended(innocent)).outcome).toBe("cancelled");
    expect(await stage.said(innocent, "obeyed")).toEqual({ reason: "CANCELLED" });
  });

  it("is ended with a stopping worker, and its run can be retried on another worker", async () => {
    const tower = stage.make({ drain: "100ms" });
    const task = isolated(tower, { in: place, killAfter: "50ms" });
    await tower.start();
    const { runId } = await task.enqueue({ act: "begins", ms: 120_000 });
    const { pid } = await stage.said(runId, "begun");
    await tower.stop();
    if (place === "process") await until("the process to be gone", () => !isAlive(pid));
    const [attempt] = await stage.rows<{ error: unknown }>("select error from $s.attempt where run_id = $1", [runId]);
    expect(attempt?.error).toMatchObject({ code: "STOPPED" });
  });

  it("runs in a remote worker over HTTP", async () => {
    const remote = new RemoteStage(stage.schema);
    try {
      await remote.serve();
      await remote.task("isolated");
      await remote.task("typed");
      const served = worker({
        server: remote.urlOf(),
        key: await remote.key("isolated"),
        handleSignals: false,
        log: stage.recorded.log,
      });
      served.task("isolated", { isolate: place }, module).task("typed", { isolate: place }, handlerFile("-typed.ts"));
      await served.start();
      stage.opened.push(served);
      const run = async (act: string) => stage.ended((await remote.server.enqueue("isolated", { act })).runId);
      expect((await run("fields")).result).toMatchObject({ task: "isolated", attempt: 1 });
      const told = (await remote.server.enqueue("isolated", { act: "tells" })).runId;
      expect((await stage.ended(told)).result).toBe(new Date(0).toISOString());
      await stage.said(told, "warned");
      expect((await run("throwsOwn")).error).toMatchObject({ code: "E_OWN", message: "mine" });
      expect((await run("exits")).error).toMatchObject({ code: "HANDLER_CRASHED" });
      const typed = (await remote.server.enqueue("typed", { name: "Ada" })).runId;
      expect((await stage.ended(typed)).result).toBe("hello Ada, 1");
    } finally {
      await Promise.all(stage.opened.splice(0).map((one) => one.stop()));
      await remote.close();
    }
  });

  it("with an invalid module is refused at the start, with its path", async () => {
    for (const [name, message] of [
      ["-nameless.mjs", "has no function as its default export"],
      ["-broken.mjs", "cannot be loaded: not today"],
    ] as const) {
      const tower = stage.make();
      tower.task("refused", { isolate: place }, handlerFile(name));
      await expect(tower.start()).rejects.toMatchObject({
        code: "TASK_INVALID",
        path: "handler",
        message: `task refused: ${fileURLToPath(handlerFile(name))} ${message}`,
      });
    }
  });
});

it("a span of the handler is a child of its run's span", async () => {
  const exporter = new InMemorySpanExporter();
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  try {
    const tower = stage.make();
    const task = isolated(tower, { pool: 1 });
    await tower.start();
    await stage.ended((await task.enqueue({ act: "traced" })).runId);
    const { runId } = await task.enqueue({ act: "tracedId" });
    const { result } = await stage.ended(runId);
    const span = exporter
      .getFinishedSpans()
      .find(({ attributes }) => attributes["carillon.attempt"] === 1 && attributes["carillon.run"] === runId);
    expect(result).toBe(span?.spanContext().traceId);
  } finally {
    trace.disable();
    context.disable();
  }
});

it("a computing host process ends when its worker is killed", async () => {
  const tower = stage.make({ worker: false });
  const order = JSON.stringify({ store: stage.url, schema: stage.schema });
  await tower.start();
  const program = fileURLToPath(new URL("../support/programs/isolating-node.mjs", import.meta.url));
  const child = spawn(process.execPath, [program], {
    env: { ...process.env, CARILLON_TEST_PROGRAM: order },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    await new Promise((resolve) => child.stdout.once("data", resolve));
    const { runId } = await tower.enqueue("isolated", { act: "begins", ms: 600_000 });
    const { pid } = await stage.said(runId, "begun");
    expect(pid).not.toBe(child.pid);
    expect(isAlive(pid)).toBe(true);
    child.kill("SIGKILL");
    await until("it to be gone", () => !isAlive(pid));
  } finally {
    child.kill("SIGKILL");
  }
});

/** Returns the properties that must be the same for a plain run and an isolated one. */
function comparable(
  runId: number,
  task: string,
  { outcome, result, error, attempt }: Row,
  logs: { message: string }[],
) {
  const same = (value: unknown) =>
    JSON.parse(
      JSON.stringify(value ?? null)
        .replaceAll(`run ${runId}`, "run N")
        .replaceAll(`"${task}"`, '"TASK"'),
    );
  const first = error?.stack?.replaceAll("file://", "").split("\n").slice(0, 2);
  return same({
    outcome,
    result,
    attempt,
    error: error && { ...error, stack: first },
    logs: logs.map(({ message, ...more }) => ({ message, ...more, fields: undefined })),
  });
}
