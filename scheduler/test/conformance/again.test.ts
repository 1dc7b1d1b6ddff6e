import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { every } from "../../src/index.ts";
import { ownSchema } from "../support/own-schema.ts";
import { everyPostgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

describe.each(everyPostgres())("enqueueing another run after the running one of the same key, on $title", ({ url }) => {
  const { schema, database, make } = ownSchema(url, "again", { drain: 0 });
  const live = async () =>
    (await database.query(`select id::int, key, state, again is not null as again from ${schema}.run order by id`))
      .rows;
  const ended = async () =>
    (await database.query(`select payload, key, outcome from ${schema}.run_history order by ended_ms, id`)).rows as {
      payload: unknown;
    }[];

  /** Defines a task whose runs wait until the test ends them, and records the payloads that its handler received. */
  function worked(options: object = {}) {
    const tower = make();
    const seen: unknown[] = [];
    const ends: ((how?: Error) => void)[] = [];
    let running = 0;
    let most = 0;
    const task = tower.task("a", options, async (run, payload: unknown) => {
      seen.push(payload);
      most = Math.max(most, ++running);
      await new Promise<void>((resolve, reject) => {
        run.signal.addEventListener("abort", () => reject(run.signal.reason));
        ends.push((how) => (how ? reject(how) : resolve()));
      }).finally(() => running--);
    });
    const begun = (many: number) => until(`${many} have begun`, async () => seen.length === many);
    return { tower, task, seen, ends, begun, most: () => most };
  }
  const again = { key: "k", ifKeyTaken: "again" } as const;

  test("of several enqueues during a run, the last one's payload, priority and policies are used for the next run", async () => {
    const { tower, task, seen, ends, begun, most } = worked();
    await tower.start();
    const first = await task.enqueue(1, again);
    expect(first).toMatchObject({ created: true, again: undefined });
    await begun(1);
    for (const version of [2, 3]) {
      const handle = await task.enqueue(version, { ...again, priority: version, retry: version });
      expect(handle).toMatchObject({ runId: first.runId, created: false, again: true, replaced: undefined });
    }
    expect(await task.enqueue(9, { key: "k" })).toMatchObject({ runId: first.runId, created: false, again: undefined });
    ends[0]?.();
    await begun(2);
    expect(seen).toEqual([1, 3]);
    const [second] = await live();
    expect(await tower.runs.get(second.id)).toMatchObject({
      key: "k",
      priority: 3,
      overrides: { retry: { attempts: 3 } },
    });
    ends[1]?.();
    await until("both have ended", async () => (await ended()).length === 2);
    expect(await live()).toEqual([]);
    expect(most()).toBe(1);
  });

  test("a waiting run takes the newer payload and due time instead", async () => {
    const { tower, task, seen, ends, begun } = worked();
    await tower.start();
    const first = await task.enqueue(1, { ...again, in: "1h" });
    const second = await task.enqueue(2, again);
    expect(second).toMatchObject({ created: true, replaced: first.runId, again: undefined });
    await begun(1);
    expect(seen).toEqual([2]);
    ends[0]?.();
    await second.result({ timeout: "60s" });
  });

  test.each([
    ["fails", (end: (how?: Error) => void) => end(new Error("no")), {}],
    ["is cancelled", async (_: unknown, cancel: () => Promise<unknown>) => cancel(), {}],
    ["succeeds without a row", (end: (how?: Error) => void) => end(), { history: "failures" }],
    ["ends in a queue with others", (end: (how?: Error) => void) => end(), { overlap: "queue" }],
    [
      "ends in a task planned from its ends",
      (end: (how?: Error) => void) => end(),
      { schedule: every("1d", { mode: "delay" }) },
    ],
  ] as const)("the next run follows a run that %s", async (_, act, options) => {
    const { tower, task, seen, ends, begun, most } = worked(options);
    await tower.start();
    const first = await task.enqueue(1, again);
    await begun(1);
    await task.enqueue(2, again);
    if ("overlap" in options) await task.enqueue("another");
    await act(ends[0] as () => void, () => first.cancel());
    await begun(2);
    ends[1]?.();
    if ("overlap" in options) {
      await begun(3);
      ends[2]?.();
    }
    await until("nothing is left", async () => (await live()).every(({ key }) => key === null));
    expect(seen.toSorted()).toEqual("overlap" in options ? [1, 2, "another"] : [1, 2]);
    if ("overlap" in options) expect(most()).toBe(1);
  });

  test("the next run follows a run cancelled between its attempts, and the last run of a chain", async () => {
    const { tower, task, seen, ends, begun } = worked({ retry: { attempts: 3, delay: "1h" } });
    const chain: unknown[] = [];
    const gate: (() => void)[] = [];
    const link = tower.task("link", {}, async (run, step: number) => {
      chain.push(step);
      await new Promise<void>((resolve) => gate.push(resolve));
      return step === 1 ? run.continueAs(2) : undefined;
    });
    await tower.start();
    const first = await task.enqueue(1, again);
    await begun(1);
    ends[0]?.(new Error("not yet"));
    await until("it waits for its next try", async () => (await first.status()).state === "ready");
    await task.enqueue(2, again);
    await first.cancel();
    await begun(2);
    expect(seen).toEqual([1, 2]);
    ends[1]?.();

    await link.enqueue(1, again);
    await until("the first link", async () => chain.length === 1);
    expect(await link.enqueue(7, again)).toMatchObject({ again: true });
    gate[0]?.();
    await until("the second link", async () => chain.length === 2);
    await pause(50);
    expect(chain).toEqual([1, 2]);
    gate[1]?.();
    await until("the one that follows", async () => chain.length === 3);
    expect(chain).toEqual([1, 2, 7]);
    gate[2]?.();
  });

  test("in the caller's transaction, the next run exists if the transaction commits, and not otherwise", async () => {
    const { tower, task, seen, ends, begun } = worked();
    await tower.start();
    await task.enqueue(1, again);
    await begun(1);
    for (const [payload, how] of [
      [2, "rollback"],
      [3, "commit"],
      [4, "rollback"],
    ] as const) {
      await database.query("begin");
      expect(await task.enqueue(payload, { ...again, tx: database })).toMatchObject({ again: true });
      await database.query(how);
    }
    ends[0]?.();
    await begun(2);
    expect(seen).toEqual([1, 3]);
    ends[1]?.();
  });

  test("a removed task gets no next run; if another run took its number, the next run gets another number", async () => {
    const { tower, task, seen, ends, begun } = worked({ retry: { attempts: 2, delay: "1h" } });
    await tower.start();
    await task.enqueue(1, again);
    await begun(1);
    ends[0]?.(new Error("not yet"));
    await until("it waits for its next try", async () => (await live())[0]?.state === 2);
    await task.enqueue(2, again);
    await tower.remove("a");
    expect(await live()).toEqual([]);

    const other = tower.task("b", {}, async (_run, payload: unknown) => {
      seen.push(payload);
      await new Promise<void>((resolve) => ends.push(() => resolve()));
    });
    const holder = await other.enqueue(3, again);
    await begun(2);
    await other.enqueue(4, again);
    const taken = await other.enqueue("taken", { in: "1h" });
    await database.query(
      `update ${schema}.run set again = again || jsonb_build_object('runId', $2::bigint) where id = $1`,
      [holder.runId, taken.runId],
    );
    ends[1]?.();
    await begun(3);
    expect(seen).toEqual([1, 3, 4]);
    ends[2]?.();
  });

  test("enqueues and run ends at once: each payload that was the last is processed, one at a time", async () => {
    const tower = make({ concurrency: 4 });
    const done = new Set<number>();
    let running = 0;
    let most = 0;
    const task = tower.task("a", {}, async (_run, payload: number) => {
      most = Math.max(most, ++running);
      await pause(1);
      done.add(payload);
      running--;
    });
    await tower.start();
    for (let round = 0; round < 150; round++) {
      await Promise.all([task.enqueue(2 * round, again), task.enqueue(2 * round + 1, again)]);
      if (round % 3 === 0) await pause(round % 5);
    }
    await task.enqueue(1_000, again);
    await until("the last one is done", async () => done.has(1_000) && (await live()).length === 0);
    expect(most).toBe(1);
  });
});
