import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import type { Run } from "../../src/run/handler.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, until } from "../support/store-stage.ts";

interface Begun {
  node: string;
  payload: unknown;
  shard: Run["shard"];
}

/** Tests the effects of the router's choices with complete instances of Carillon on one store. */
describe.each(everyPostgres())("the router on $title", (server) => {
  let stage: Stage;
  let towers: Carillon[] = [];
  let names = 0;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterEach(async () => {
    await Promise.all(towers.map((tower) => tower.stop()));
    towers = [];
  });
  afterAll(() => stage.close());

  const waitFor = (what: string, condition: () => boolean | Promise<boolean>) => until(what, condition);

  /** Starts a process that has the task and, if given, a label. */
  async function start(
    node: string,
    task: string,
    options: TaskOptions,
    handler: (run: Run, begun: Begun) => unknown,
    label = "",
  ) {
    const tower = carillon({
      store: server.url,
      schema: stage.schema,
      log: silentLog,
      name: node,
      drain: "1s",
      concurrency: 10,
      labels: label === "" ? {} : { kind: label },
    });
    tower.task(task, { group: task, ...options }, (run, payload) => handler(run, { node, payload, shard: run.shard }));
    towers.push(tower);
    return tower.start();
  }
  /** Starts three processes w0, w1 and w2; w2 has the label. */
  async function three(options: TaskOptions, hold?: (begun: Begun) => Promise<void>) {
    const task = `task-${++names}`;
    const begun: Begun[] = [];
    const handler = (_run: Run, one: Begun) => {
      begun.push(one);
      return hold?.(one);
    };
    for (const [at, label] of ["", "", "special"].entries())
      await start(`w${at}-${names}`, task, options, handler, label);
    const enqueue = async (payload: number, limitKey?: string) =>
      (towers[0] as Carillon).enqueue(task, payload, limitKey === undefined ? {} : { limitKey });
    const nodes = () => begun.map(({ node }) => Number(node[1]));
    return {
      task,
      begun,
      enqueue,
      nodes,
      start: (at: number, label = "") => start(`w${at}-${names}`, task, options, handler, label),
    };
  }

  it("round-robin: in turn; a label or a pin: only on matching workers", async () => {
    const ring = await three({ route: "round-robin" });
    for (let i = 0; i < 6; i++) {
      await ring.enqueue(i);
      await waitFor("it runs", () => ring.begun.length > i);
    }
    expect(ring.nodes()).toEqual([0, 1, 2, 0, 1, 2]);
    for (const options of [
      { labels: { kind: "special" } },
      { route: { pin: `w2-${names + 2}` } },
    ] satisfies TaskOptions[]) {
      await Promise.all(towers.map((tower) => tower.stop()));
      towers = [];
      const one = await three(options);
      for (let i = 0; i < 4; i++) await one.enqueue(i);
      await waitFor("all run", () => one.begun.length === 4);
      expect(one.nodes()).toEqual([2, 2, 2, 2]);
      if (!("labels" in options)) continue;
      // After the only worker with the label has left, the run waits until another worker with the label joins.
      await (towers.pop() as Carillon).stop();
      await one.enqueue(4);
      await one.start(1 + 3);
      await one.start(5, "special");
      await waitFor("the one with the label comes", () => one.begun.length === 5);
      expect(one.nodes().at(-1)).toBe(5);
    }
  });

  it("hash: a key has one worker, and moves when that worker leaves; sticky: it stays", async () => {
    const hashed = await three({ route: { hash: "key" } });
    for (let i = 0; i < 30; i++) await hashed.enqueue(i, `k${i % 6}`);
    await waitFor("all run", () => hashed.begun.length === 30);
    const home = new Map(hashed.begun.map(({ payload, node }) => [(payload as number) % 6, node]));
    for (const { payload, node } of hashed.begun) expect(home.get((payload as number) % 6)).toBe(node);
    const [, node = ""] = [...home][0] as [number, string];
    const leaver = towers.find((tower) => tower.node === node) as Carillon;
    const others = towers.filter((tower) => tower !== leaver);
    await leaver.stop();
    for (let i = 0; i < 12; i++) await (others[0] as Carillon).enqueue(hashed.task, 100 + i, { limitKey: `k${i % 6}` });
    await waitFor("all run elsewhere", () => hashed.begun.length === 42);
    expect(hashed.begun.slice(30).some((one) => one.node === node)).toBe(false);
  });

  it("any: the first worker to claim, so that all get some runs of a large number; a worker that left gets none", async () => {
    const any = await three({}, () => new Promise((resolve) => setTimeout(resolve, 50)));
    let sent = 0;
    /**
     * Enqueues further runs until the condition is true, because the other workers may claim all runs before the worker in question
     * receives a signal.
     */
    const until = async (what: string, so: () => boolean) => {
      await waitFor(what, async () => {
        if (so()) return true;
        await Promise.all(Array.from({ length: 50 }, () => any.enqueue(sent++)));
        return false;
      });
    };
    await until("some run everywhere", () => new Set(any.nodes()).size === 3);
    await (towers.pop() as Carillon).stop();
    const before = any.begun.length;
    await any.start(3);
    await until("the one that came has some", () => any.nodes().includes(3));
    await waitFor("all run", () => any.begun.length === sent);
    expect(new Set(any.begun.map(({ payload }) => payload)).size, "each once").toBe(sent);
    expect(any.nodes().slice(before)).not.toContain(2);
  });

  it("broadcast: each worker once; shards: each shard once, spread evenly", async () => {
    const all = await three({ route: "broadcast" });
    await all.enqueue(1);
    await waitFor("each has it", () => all.begun.length === 3);
    expect(all.nodes().sort()).toEqual([0, 1, 2]);
    expect(all.begun.map(({ shard }) => shard?.index).sort()).toEqual([0, 1, 2]);
    // A worker that has left gets no part of the broadcast, and a worker that has joined gets one.
    await (towers.pop() as Carillon).stop();
    await all.enqueue(2);
    await waitFor("each that is left has it", () => all.begun.length === 5);
    await all.start(3);
    await all.enqueue(3);
    await waitFor("and the new one", () => all.begun.length === 8);
    const of = (payload: number) =>
      all.begun.filter((one) => one.payload === payload).map(({ node }) => Number(node[1]));
    expect([of(2).sort(), of(3).sort()]).toEqual([
      [0, 1],
      [0, 1, 3],
    ]);
    await Promise.all(towers.map((tower) => tower.stop()));
    towers = [];
    const parts = await three({ route: { shards: 6 } });
    await parts.enqueue(2);
    await waitFor("each part runs", () => parts.begun.length === 6);
    expect(parts.begun.map(({ shard }) => shard?.index).sort()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(parts.begun.every(({ shard, payload }) => shard?.total === 6 && payload === 2)).toBe(true);
    expect(parts.nodes().sort()).toEqual([0, 0, 1, 1, 2, 2]);
  });

  it("perWorker: never more than n at once on one worker, and all runs execute", async () => {
    const atOnce = new Map<string, number>();
    let most = 0;
    const limited = await three({ limit: { perWorker: 2 } }, async ({ node }) => {
      atOnce.set(node, (atOnce.get(node) ?? 0) + 1);
      most = Math.max(most, ...atOnce.values());
      await new Promise((resolve) => setTimeout(resolve, 150));
      atOnce.set(node, (atOnce.get(node) ?? 0) - 1);
    });
    await Promise.all(Array.from({ length: 30 }, (_, i) => limited.enqueue(i)));
    await waitFor("all run", () => limited.begun.length === 30);
    expect(most).toBe(2);
    expect(new Set(limited.nodes()).size).toBe(3);
  });

  it("a rate admits its limit, and wakes by itself for the next run", async () => {
    const rated = await three({ rate: { limit: 2, per: "500ms" } });
    for (let i = 0; i < 8; i++) await rated.enqueue(i);
    const claimed = () =>
      stage.rows<{ ms: number }>(
        "select claimed_ms as ms from $s.run_history r join $s.task t on t.id = r.task_id where t.name = $1 order by 1",
        [rated.task],
      );
    await waitFor("all have run", async () => (await claimed()).length === 8);
    // Uses the times of the claims in the store, because a handler starts later if its process is delayed.
    const times = (await claimed()).map(({ ms }) => ms);
    expect((times.at(-1) as number) - (times[0] as number)).toBeGreaterThan(1_300);
  });

  it("a run that waits for a worker runs when it joins, and its unclaimed runs move when it stops", async () => {
    const waits = await three({ route: { pin: `w3-${names + 1}` } });
    await waits.enqueue(1);
    await waitFor("the leader is told that nobody can take it", async () => {
      const { leadership } = await stage.store.sessions.members();
      const pulse = await stage.store.sessions.beat(leadership.sessionId as number, Date.now() + 61_000, {
        unserved: true,
      });
      return pulse.unserved?.includes(`task ${waits.task}`) === true;
    });
    expect(waits.begun).toEqual([]);
    await waits.start(3);
    await waitFor("it runs", () => waits.begun.length === 1);
    expect(waits.nodes()).toEqual([3]);
  });
});
