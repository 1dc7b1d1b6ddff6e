/** Tests operations, drains and the state of a process through the library. */
import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { every } from "../../src/index.ts";
import { ownSchema } from "../support/own-schema.ts";
import { everyPostgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

describe.each(everyPostgres())("the library on $title", ({ url }) => {
  const { make } = ownSchema(url, "acts", { drain: 0 });

  test("pauses and resumes all tasks, cancels and redrives runs, also without a process that schedules", async () => {
    const tower = make({ scheduler: false });
    tower.task("a", { schedule: every("1h") }, () => undefined);
    tower.task("b", { schedule: every("1h") }, () => undefined);
    const fails = tower.task("fails", {}, () => Promise.reject(new Error("no")));
    await tower.start();
    const paused = await tower.operations.begin(
      "pause",
      { all: true },
      { reason: "maintenance", pauseUntil: "2090-01-01T00:00:00Z" },
    );
    expect(await paused.result({ timeout: "60s" })).toMatchObject({
      kind: "pause",
      state: "done",
      done: 3,
      reason: "maintenance",
    });
    const { store } = await tower.open();
    const pauses = async () =>
      (await Promise.all(["a", "b", "fails"].map((name) => store.tasks.byName(name)))).map(
        (one) => one.paused?.untilMs,
      );
    expect(await pauses()).toEqual(Array(3).fill(Date.parse("2090-01-01T00:00:00Z")));
    const waiting = await tower.enqueue("a", null, { in: "1h" });
    const again = { token: randomBytes(8).toString("hex") };
    const [first, second] = [
      await tower.operations.begin("cancel", { task: "a" }, again),
      await tower.operations.begin("cancel", { task: "a" }, again),
    ];
    expect(second.operationId).toBe(first.operationId);
    expect(await first.result({ timeout: "60s" })).toMatchObject({ done: 1 });
    expect(await waiting.status()).toMatchObject({ state: "cancelled" });
    await (await tower.operations.begin("resume", { matching: "?" })).result({ timeout: "60s" });
    expect(await pauses()).toEqual([undefined, undefined, Date.parse("2090-01-01T00:00:00Z")]);
    await tower.resume("fails");
    const failed = await fails.enqueue();
    await expect(failed.result({ timeout: "60s" })).rejects.toMatchObject({ code: "RUN_FAILED" });
    const redriven = await tower.operations.begin("redrive", { task: "fails", since: new Date(0) });
    expect(await redriven.result({ timeout: "60s" })).toMatchObject({ done: 1 });
    expect((await tower.operations.list()).map(({ kind }) => kind)).toEqual(["redrive", "resume", "cancel", "pause"]);
    expect(await tower.operations.get(first.operationId).status()).toMatchObject({ kind: "cancel" });
  });

  test("refuses an operation without a target, and unknown options", async () => {
    const tower = make({ worker: false });
    await expect(tower.operations.begin("pause", {})).rejects.toMatchObject({ code: "FILTER_EMPTY" });
    await expect(tower.operations.begin("pause", { all: true }, { until: "1h" } as never)).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
    await expect(tower.operations.begin("cancel", { since: new Date("x") })).rejects.toMatchObject({
      code: "OPTION_INVALID",
      path: "since",
    });
    await expect(tower.operations.get(99).result()).rejects.toMatchObject({ code: "OPERATION_UNKNOWN" });
    const aborted = AbortSignal.abort(new Error("mine"));
    await expect(tower.operations.get(99).result({ signal: aborted })).rejects.toThrow("mine");
  });

  test("drains this process: it claims no more runs, its current ones end, and another process takes over", async () => {
    const ran: string[] = [];
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const start = async (name: string) => {
      const tower = make({ name });
      tower.task("work", {}, async () => {
        ran.push(name);
        await held;
      });
      await tower.start();
      return tower;
    };
    const one = await start("one");
    const first = await one.enqueue("work");
    await until("its run", async () => ran.length === 1);
    await expect(one.nodes.drain(undefined, { timeout: "300ms", reason: "update" })).rejects.toMatchObject({
      code: "RESULT_TIMEOUT",
      message: expect.stringContaining(`work ${first.runId}`),
    });
    expect(await one.nodes.drained()).toMatchObject([{ node: "one", held: 1, why: "update" }]);
    const second = await one.enqueue("work");
    const drained = one.nodes.drain();
    release();
    await drained;
    await first.result({ timeout: "60s" });
    const two = await start("two");
    await second.result({ timeout: "60s" });
    expect(ran).toEqual(["one", "two"]);
    expect((await two.nodes.list()).map(({ node }) => node).sort()).toEqual(["one", "two"]);
    expect([await two.nodes.resume("one"), await two.nodes.resume("one")]).toEqual([true, false]);
    await expect(two.nodes.drain("three")).rejects.toMatchObject({ code: "NODE_UNKNOWN" });
  });

  test("reports whether this process is ready, and why not", async () => {
    const tower = make({ name: "one" });
    tower.task("a", {}, () => undefined);
    expect(tower.health()).toEqual({ ready: false, why: "starting", node: "one", leads: false, running: null });
    const starting = tower.start();
    expect(tower.health()).toMatchObject({ ready: false, why: "starting" });
    await starting;
    expect(tower.health()).toMatchObject({ ready: true, why: null, running: 0 });
    await until("its term", async () => tower.health().leads);
    const stopping = tower.stop();
    expect(tower.health()).toMatchObject({ ready: false, why: "stopping" });
    await stopping;
    expect(tower.health()).toEqual({ ready: false, why: "stopping", node: "one", leads: false, running: null });
  });
});
