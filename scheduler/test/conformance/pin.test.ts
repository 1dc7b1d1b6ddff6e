import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import type { Run } from "../../src/run/handler.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import { postgres } from "../support/servers.ts";
import { openStage, type Stage, until } from "../support/store-stage.ts";

interface Try {
  release: string;
  task: string;
  payload: unknown;
  attempt: number;
}

/** Tests with processes of two releases on one store. */
describe("a run pinned to the release it started with", () => {
  let stage: Stage;
  let towers: Carillon[] = [];
  let tries: Try[] = [];
  beforeAll(async () => {
    stage = await openStage(postgres());
  });
  afterEach(async () => {
    await Promise.all(towers.map((tower) => tower.stop()));
    towers = [];
    tries = [];
  });
  afterAll(() => stage.close());

  type Does = (run: Run, payload: unknown) => unknown;

  async function start(release: string, tasks: Record<string, [TaskOptions, Does]>): Promise<Carillon> {
    const tower = carillon({
      store: postgres().url,
      schema: stage.schema,
      log: silentLog,
      release,
      releaseGrace: "1s",
      drain: "1s",
    });
    for (const [task, [options, does]] of Object.entries(tasks))
      tower.task(task, options, (run, payload) => {
        tries.push({ release, task, payload, attempt: run.attempt });
        return does(run, payload);
      });
    towers.push(tower);
    await tower.start();
    return tower;
  }

  const failsTill =
    (attempt: number): Does =>
    (run) => {
      if (run.attempt < attempt) throw new Error("not yet");
    };
  const live = new Set(["ready", "claimed", "held"]);
  const stateOf = async (runId: number) => (await stage.store.runs.find(runId))?.state ?? "";
  const ended = (runIds: number[]) =>
    until("the runs end", async () => (await Promise.all(runIds.map(stateOf))).every((state) => !live.has(state)));

  it("is retried on that release, and so are its children if their task is pinned", async () => {
    const again = { retry: { attempts: 3, delay: "20ms", jitter: 0 } } as const;
    const parent: Does = (run, payload) => {
      if (run.attempt < 2) throw new Error("not yet");
      const children = [1, 2, 3].map((n) => ({ task: "child", payload: [payload, n], key: String(n) }));
      return run.fanOut(children, { join: "join", payload: [payload] });
    };
    const tasks: Record<string, [TaskOptions, Does]> = {
      parent: [{ pin: "release", route: "round-robin", ...again }, parent],
      child: [{ pin: "release", route: "round-robin", ...again }, failsTill(3)],
      join: [{ pin: "release", route: "round-robin" }, () => undefined],
    };
    const [one] = [await start("1", tasks), await start("2", tasks)];
    const runIds: number[] = [];
    for (let n = 0; n < 6; n++) runIds.push((await one.enqueue("parent", n)).runId);
    await ended(runIds);
    await until("all are joined", () => tries.filter(({ task }) => task === "join").length === 6);
    const began = new Map(
      tries.filter(({ task }) => task === "parent").map(({ payload, release }) => [payload, release]),
    );
    expect(new Set(began.values())).toEqual(new Set(["1", "2"]));
    for (const { task, payload, release } of tries)
      expect(release, `${task} of ${payload}`).toBe(began.get(task === "parent" ? payload : (payload as unknown[])[0]));
    expect(tries).toHaveLength(6 * 2 + 18 * 3 + 6);
  });

  it("if that release is gone, moves to any other, fails, or waits, as its task's options say", async () => {
    const ways = ["any", "fail", "wait"] as const;
    const tasks = (does: Does): Record<string, [TaskOptions, Does]> =>
      Object.fromEntries(
        ways.map((onReleaseGone) => [
          onReleaseGone,
          [
            { pin: "release", onReleaseGone, retry: { attempts: 1_000, delay: "200ms", backoff: "fixed", jitter: 0 } },
            does,
          ],
        ]),
      );
    const fails = () => {
      throw new Error("not yet");
    };
    const one = await start("1", tasks(fails));
    const runIds: number[] = [];
    for (const task of ways) runIds.push((await one.enqueue(task, null)).runId);
    await until("each has been tried", () => new Set(tries.map(({ task }) => task)).size === 3);
    await start(
      "2",
      tasks(() => undefined),
    );
    await one.stop();
    await ended(runIds.slice(0, 2));
    expect(await Promise.all(runIds.map(stateOf))).toEqual(["succeeded", "failed", "ready"]);
    expect((await stage.store.runs.find(runIds[1] as number))?.error).toMatchObject({ code: "RELEASE_GONE" });
    await start(
      "1",
      tasks(() => undefined),
    );
    await ended(runIds);
    const releasesOf = (task: string) => [
      ...new Set(tries.filter((one) => one.task === task).map(({ release }) => release)),
    ];
    expect(ways.map(releasesOf)).toEqual([["1", "2"], ["1"], ["1"]]);
  });
});
