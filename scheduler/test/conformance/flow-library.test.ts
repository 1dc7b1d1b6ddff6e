import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterEach, describe, expect, test } from "vitest";
import { limits } from "../../src/base/limits.ts";
import { silentLog } from "../../src/base/log.ts";
import { type Carillon, carillon, isCarillonError, type RunInput } from "../../src/index.ts";
import { everyPostgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

describe.each(everyPostgres())("runs that a handler starts, on $title", ({ url }) => {
  let schema = "";
  const towers: Carillon[] = [];
  afterEach(async () => {
    await Promise.all(towers.splice(0).map((tower) => tower.stop()));
    const database = new pg.Client({ connectionString: url });
    await database.connect();
    await database.query(`drop schema if exists ${schema} cascade`);
    await database.end();
  });

  function make(): Carillon {
    schema = `flow_${randomBytes(4).toString("hex")}`;
    const tower = carillon({ store: url, schema, handleSignals: false, log: silentLog, drain: "5s" });
    towers.push(tower);
    return tower;
  }
  async function seen(text: string) {
    const database = new pg.Client({ connectionString: url });
    await database.connect();
    return database.query(text.replaceAll("$s", schema)).finally(() => database.end());
  }
  async function ended(tower: Carillon, runId: number) {
    const { store } = await tower.open();
    await until(`run ${runId} to end`, async () => (await store.runs.find(runId)).endedMs !== null);
    return store.runs.find(runId);
  }

  test("starts runs of this process's tasks while they are still being stored, as during start-up", async () => {
    const tower = make();
    tower.task("album", {}, (run) => run.fanOut([{ task: "resize", payload: 1 }], { join: "album-done" }));
    for (let n = 0; n < 3_000; n++) tower.task(`other-${n}`, {}, () => undefined);
    tower.task("resize", {}, () => undefined);
    tower.task("album-done", {}, () => "done");
    const { runId } = await tower.enqueue("album");
    await tower.start();
    expect(await ended(tower, runId)).toMatchObject({ state: "succeeded", error: null });
    await until(
      "the join",
      async () => (await tower.runs.count({ task: "album-done", states: ["succeeded"] })).runs === 1,
    );
  });

  test("fans out, retries without duplicating a child, and joins once with the results", async () => {
    const tower = make();
    const joined: RunInput[][] = [];
    const sizes: number[] = [];
    tower.task("resize", {}, (_run, file) => {
      sizes.push(1);
      if (file === "broken") throw new Error("no image");
      return { file, size: 7 };
    });
    tower.task("publish", {}, async (run) => {
      joined.push(await run.inputs());
    });
    const all = tower.task("resize-all", { retry: { attempts: 3, delay: 0 } }, async (run, files: string[]) => {
      const early = await run.spawn("resize", "early", { key: "early" });
      expect(early.created).toBe(run.attempt === 1);
      const next = await run.fanOut(
        files.map((file) => ({ task: "resize", payload: file, key: file })),
        { join: "publish" },
      );
      if (run.attempt < 3) throw new Error("once more");
      return next;
    });
    await tower.start();
    const { runId } = await all.enqueue(["a", "b", "broken"]);
    await until("the join", () => joined.length > 0);
    expect((joined[0] as RunInput[]).map(({ key, outcome, result }) => [key, outcome, result]).sort()).toEqual([
      ["a", "succeeded", { file: "a", size: 7 }],
      ["b", "succeeded", { file: "b", size: 7 }],
      ["broken", "failed", null],
      ["early", "succeeded", { file: "early", size: 7 }],
    ]);
    expect(await ended(tower, runId)).toMatchObject({ state: "succeeded", attempt: 3, result: null });
    const { store } = await tower.open();
    const relatives = await store.flow.relatives(runId, 50);
    expect(relatives.map(({ relation }) => relation).sort()).toEqual(["child", "child", "child", "child", "join"]);
    expect(sizes).toHaveLength(4);

    // A request for many runs returns the same data as one request per run, and reports ids without a run.
    await tower.enqueue("publish", undefined, { in: "1h" });
    const { rows } = await seen(`select id from $s.run union all select id from $s.run_history order by id`);
    const ids = [...rows.map(({ id }) => Number(id)), 10 ** 12];
    expect(ids.length).toBeGreaterThan(6);
    const alone = await Promise.all(
      ids.slice(0, -1).map(async (id) => {
        const { letter, redrives } = await store.deadLetters.linksOf(id);
        return {
          run: await store.runs.find(id),
          attempts: await store.runs.attempts(id),
          redrives,
          relatives: await store.flow.relatives(id, 3),
          late: await store.flow.lateResults(id),
          letter: letter && { fingerprint: letter.fingerprint, state: letter.state, redrivenBy: letter.redrivenBy },
        };
      }),
    );
    expect(alone.map(({ letter }) => letter !== null)).toContain(true);
    expect(Math.max(...alone.map(({ attempts }) => attempts.length))).toBe(2);
    expect(await store.browse.whole([...ids, runId], 3)).toEqual([...alone, null, alone[ids.indexOf(runId)]]);
  });

  test("children without keys are identified by call order; a child that cannot be made is an error in the handler", async () => {
    const tower = make();
    tower.task("child", {}, (_run, n) => n);
    const codes: string[] = [];
    const task = tower.task("parent", { retry: { attempts: 2, delay: 0 } }, async (run) => {
      const made = await Promise.all([run.spawn("child", 1), run.spawn("child", 2), run.spawn("child", 3)]);
      const code = (error: unknown) => (isCarillonError(error) ? error.code : String(error));
      for (const wrong of [
        () => run.spawn("nobody"),
        () => run.spawn("child", 1, { key: "" }),
        () => run.spawn("child", "x".repeat(limits.payloadBytes)),
        () => run.saveState("x".repeat(limits.payloadBytes)),
        () => run.saveState(1n),
        async () => run.continueAs(1n),
      ])
        await wrong().catch((error) => codes.push(code(error)));
      if (run.attempt === 1) throw new Error("again");
      return made.map(({ runId, created }) => [runId, created]);
    });
    await tower.start();
    const { result } = await ended(tower, (await task.enqueue(undefined)).runId);
    expect((result as [number, boolean][]).map(([, created]) => created)).toEqual([false, false, false]);
    expect(codes.slice(0, 6)).toEqual([
      "TASK_UNKNOWN",
      "OPTION_INVALID",
      "PAYLOAD_TOO_LARGE",
      "PAYLOAD_TOO_LARGE",
      "PAYLOAD_NOT_JSON",
      "PAYLOAD_NOT_JSON",
    ]);
  });

  test("continues as another run, with a state that each attempt can read; the follower waits for the last run", async () => {
    const tower = make();
    const states: unknown[] = [];
    tower.task("after-pages", { after: "pages" }, async (run) => (await run.inputs()).map(({ result }) => result));
    const pages = tower.task("pages", { retry: { attempts: 2, delay: 0 } }, async (run, page: number) => {
      states.push([page, run.attempt, run.state]);
      if (run.attempt === 1) {
        // The handler does not await the first call before the second; the state of the second call is stored last.
        await Promise.all([run.saveState({ page, half: 1 }), run.saveState({ page, half: 2 })]);
        expect(run.state).toEqual({ page, half: 2 });
        throw new Error("half-way");
      }
      return page < 3 ? run.continueAs(page + 1, { state: { from: page } }) : "all read";
    });
    await tower.start();
    await pages.enqueue(1, { key: "reader" });
    const { store } = await tower.open();
    const list = () => store.runs.list({ task: "after-pages", states: ["succeeded"], limit: 10 });
    await until("the task after it", async () => (await list()).length > 0);
    expect(states).toEqual([
      [1, 1, null],
      [1, 2, { page: 1, half: 2 }],
      [2, 1, { from: 1 }],
      [2, 2, { page: 2, half: 2 }],
      [3, 1, { from: 2 }],
      [3, 2, { page: 3, half: 2 }],
    ]);
    expect(await list()).toMatchObject([{ result: ["all read"] }]);
    const links = await store.runs.list({ task: "pages", states: ["succeeded"], limit: 10 });
    expect(links.map(({ key }) => key)).toEqual(["reader", "reader", "reader"]);
    expect(links.map(({ source }) => source).sort()).toEqual(["chain", "chain", "enqueue"]);
  });

  test("tasks are stored in the order of their dependencies, in whatever order they are defined", async () => {
    const tower = make();
    tower.task("c", { after: ["a", "b"] }, () => "c");
    tower.task("b", { after: "a" }, () => "b");
    const a = tower.task("a", {}, () => "a");
    // Before the start, an enqueue also stores the predecessors of the run's task.
    await tower.enqueue("c");
    await tower.start();
    await a.enqueue(undefined);
    const { store } = await tower.open();
    await until("c", async () => (await store.runs.list({ task: "c", states: ["succeeded"], limit: 10 })).length === 2);
  });
});
