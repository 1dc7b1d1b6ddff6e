import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import { checkServer } from "../../src/cli/nodes/checks.ts";
import { carillon, every } from "../../src/index.ts";
import type { CarillonOptions } from "../../src/settings/settings.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { inspectPostgres } from "../../src/store/postgres/runs/inspect.ts";
import { historyStore } from "../../src/store/postgres/tasks/history.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { Pgbouncer } from "../support/pgbouncer.ts";
import { everyPostgres, type TestServer } from "../support/servers.ts";
import { complaints, dayMs, openStage, recordingLog, type Stage, until } from "../support/store-stage.ts";

const dayName = (table: string, ms: number) =>
  `${table}_${new Date(ms).toISOString().slice(0, 10).replaceAll("-", "")}`;
const surroundings = { clock: systemClock, random: systemRandom, log: silentLog };

async function recordOf(stage: Stage, name: string): Promise<TaskRecord> {
  const found = await stage.store.tasks.byName(name);
  if (!found) throw new Error(`there is no task ${name}`);
  return found;
}

/** Starts a pooler in front of the PostgreSQL server, and a stage whose connections go through the pooler. */
async function pooled(server: TestServer, mode: "transaction" | "session", poolSize: number) {
  const pooler = await Pgbouncer.before(server.direct, { mode, poolSize });
  return { pooler, stage: await openStage({ ...server, url: pooler.url }) };
}

/**
 * Enqueues runs one by one, as another process would. Without a signal, the node notices such a run only with its next heartbeat.
 * @param begun the ids of the runs that the node has started
 * @returns how many runs started before the node's next heartbeat
 */
async function begunBetweenBeats(
  stage: Stage,
  { name, begun, runs }: { name: string; begun: Set<number>; runs: number },
): Promise<number> {
  const record = await recordOf(stage, name);
  const beat = async () => (await stage.one("select beat from $s.session where ended_ms is null")).beat;
  let between = 0;
  for (let at = 0; at < runs; at++) {
    const before = await beat();
    const runId = await stage.enqueue(record);
    await until("it to begin", () => begun.has(runId));
    if ((await beat()) === before) between++;
  }
  return between;
}

describe.each(everyPostgres())("through PgBouncer in transaction mode with four connections, $title", (server) => {
  let pooler: Pgbouncer;
  let stage: Stage;
  beforeAll(async () => {
    ({ pooler, stage } = await pooled(server, "transaction", 4));
  });
  afterAll(async () => {
    await stage?.close();
    await pooler?.kill();
  });

  const node = (options: CarillonOptions = {}) =>
    carillon({ store: pooler.url, schema: stage.schema, handleSignals: false, log: recordingLog().log, ...options });

  it("a URL parameter that the pooler refuses is reported at once, and not treated as an unreachable store", async () => {
    const url = `${pooler.url}${pooler.url.includes("?") ? "&" : "?"}options=${encodeURIComponent("-c work_mem=8MB")}`;
    await expect(openPostgres({ url, schema: stage.schema })).rejects.toMatchObject({
      code: "STORE_REFUSED",
      message: expect.stringContaining("unsupported startup parameter: options"),
      hint: expect.stringContaining("ALTER ROLE"),
    });
  });

  it("no statement is JIT-compiled, even if the server would compile costly ones", async () => {
    const database = new Database({ url: pooler.url, schema: stage.schema, connectionsMax: 1, ...surroundings });
    const jit = "select current_setting('jit') as jit, current_setting('transaction_isolation') as isolation";
    try {
      const answer = { jit: "off", isolation: "read committed" };
      expect(await database.query("", jit)).toEqual([answer]);
      expect(await database.transaction(async (client) => (await client.query(jit)).rows)).toEqual([answer]);
      expect(await database.ask("", jit)).toEqual([answer]);
      await expect(database.ask("", "select 1 / 0")).rejects.toThrow("division by zero");
      expect(await database.ask("", jit), "the connection is as good as before").toEqual([answer]);
    } finally {
      await database.close();
    }
  });

  it("runs of many callers are claimed and ended once each; runs of callers' transactions when these end", async () => {
    const { log, lines } = recordingLog();
    const towers = [node({ log }), node({ log })] as const;
    const runs = new Map<number, number>();
    const handle = (run: { id: number; attempt: number }) => {
      runs.set(run.id, (runs.get(run.id) ?? 0) + 1);
      if (run.attempt === 1 && run.id % 10 === 0) throw new Error("once more");
    };
    const retry = { attempts: 2, delay: 0 };
    const [one, other] = [towers[0].task("many", { retry }, handle), towers[1].task("many", { retry }, handle)];
    const pool = new pg.Pool({ connectionString: pooler.url, max: 4 });
    try {
      await Promise.all(towers.map((tower) => tower.start()));
      const single = Array.from({ length: 100 }, (_, at) => (at % 2 === 0 ? one : other).enqueue());
      const record = await recordOf(stage, "many");
      const writes = Array.from({ length: 200 }, () => stage.write(record));
      const bulk = stage.store.runs.enqueue(writes, stage.nowMs);
      const inTransactions = Array.from({ length: 20 }, async (_, at) => {
        const client = await pool.connect();
        try {
          await client.query("begin");
          const { runId } = await other.enqueue(undefined, { tx: client });
          await client.query(at % 2 === 0 ? "commit" : "rollback");
          return at % 2 === 0 ? [runId] : [];
        } finally {
          client.release();
        }
      });
      const enqueued = [
        ...(await Promise.all(single)).map(({ runId }) => runId),
        ...(await bulk).map(({ runId }) => runId),
        ...(await Promise.all(inTransactions)).flat(),
      ];
      expect(new Set(enqueued).size).toBe(310);
      const ended = async () =>
        (await stage.one("select count(*) as n from $s.run_history where task_id = $1", [record.taskId])).n;
      await until("all to end", async () => (await ended()) === 310);
      for (const runId of enqueued) expect(runs.get(runId)).toBe(runId % 10 === 0 ? 2 : 1);
      expect(runs.size).toBe(310);
      expect(complaints(lines)).toEqual([]);
      await until("it to say how signals come", () => lines.some(({ message }) => /signals are polled/.test(message)));
    } finally {
      await Promise.all(towers.map((tower) => tower.stop()));
      await pool.end();
    }
  });

  it("two nodes fire each slot of a schedule once, and none too early", async () => {
    const towers = [node(), node()];
    const late = new Map<number, number[]>();
    for (const tower of towers)
      tower.task("ticks", { schedule: every("200ms") }, (run) => {
        const slotMs = run.slot?.getTime() ?? Number.NaN;
        late.set(slotMs, [...(late.get(slotMs) ?? []), Date.now() - slotMs]);
      });
    try {
      await Promise.all(towers.map((tower) => tower.start()));
      await until("slots to fire", () => late.size >= 25);
    } finally {
      await Promise.all(towers.map((tower) => tower.stop()));
    }
    const slots = [...late.keys()].sort((a, b) => a - b);
    expect(slots.slice(1).map((slotMs, at) => slotMs - (slots[at] as number))).toEqual(slots.slice(1).map(() => 200));
    expect([...late.values()].filter((times) => times.length !== 1)).toEqual([]);
    // The node's estimate of the store's clock may be wrong by up to half a round trip, so runs may seem to start slightly early.
    expect(Math.min(...[...late.values()].flat())).toBeGreaterThan(-1_000);
  });

  it("signals arrive once they are committed, whatever commits before them", async () => {
    const [speaker, listener] = [await stage.another(), await stage.another()];
    const task = await stage.task("told");
    const listening = new AbortController();
    const heard = new Set<number>();
    let ready = false;
    const listened = listener.signals.listen((signal) => {
      if (signal.kind === "resync") ready = true;
      if (signal.kind === "ready" || signal.kind === "direct") heard.add(signal.dueMs);
    }, listening.signal);
    await until("it to listen", () => ready);
    // This transaction begins to write before all others and commits after them.
    const slow = new pg.Client({ connectionString: pooler.url });
    await slow.connect();
    await slow.query("begin");
    const slowMs = stage.nowMs - 5_000;
    await slow.query(`select ${stage.schema}.tell('ready ' || $1::bigint)`, [slowMs]);
    const committed = [slowMs];
    for (let at = 0; at < 100; at++) {
      const dueMs = stage.nowMs - at;
      await speaker.runs.enqueue([stage.write(task, { dueMs })], dueMs);
      committed.push(dueMs);
      await new Promise((resolve) => setTimeout(resolve, at % 20));
    }
    expect(heard.has(slowMs)).toBe(false);
    await until("all that have committed to be heard", () => committed.slice(1).every((dueMs) => heard.has(dueMs)));
    expect(heard.has(slowMs)).toBe(false);
    await slow.query("commit");
    await slow.end();
    await until("the slow one to be heard", () => heard.has(slowMs));
    listening.abort();
    await listened;
    expect([...heard].sort()).toEqual(committed.sort());
  });

  it("signals arrive at once if listenUrl leads to the server", async () => {
    const { log, lines } = recordingLog();
    // A long session timeout makes heartbeats rare (one in 5 s), so that runs start by signals.
    const tower = node({ log, listenUrl: server.direct, sessionTimeout: "1m" });
    const begun = new Set<number>();
    tower.task("at-once", {}, (run) => void begun.add(run.id));
    await tower.start();
    try {
      expect(await begunBetweenBeats(stage, { name: "at-once", begun, runs: 20 })).toBeGreaterThanOrEqual(5);
      expect(lines.map(({ message }) => message)).toContain("signals come by LISTEN at listenUrl");
    } finally {
      await tower.stop();
    }
  });

  it("a lock is held by one process at a time, and the next one is notified when it is released", async () => {
    const towers = [node(), node(), node()];
    const told = new Set<string>();
    const listening = new AbortController();
    let ready = false;
    const listener = await stage.another();
    const listened = listener.signals.listen((signal) => {
      if (signal.kind === "resync") ready = true;
      if (signal.kind === "lock") told.add(signal.token);
    }, listening.signal);
    try {
      await until("it to listen", () => ready);
      let holders = 0;
      let most = 0;
      const turns = towers.flatMap((tower) =>
        Array.from({ length: 3 }, async () => {
          const held = await tower.lock("one-at-a-time").acquire({ wait: "200s" });
          most = Math.max(most, ++holders);
          await new Promise((resolve) => setTimeout(resolve, 10));
          holders--;
          await held.release();
        }),
      );
      await Promise.all(turns);
      expect(most).toBe(1);
      await until("each but the first to have been told", () => told.size === turns.length - 1);
    } finally {
      listening.abort();
      await listened;
      await Promise.all(towers.map((tower) => tower.stop()));
    }
  });

  it("data past its retention is dropped by one of many nodes, and a reader only delays that", () =>
    pooler.besideCrashes(retention));

  async function retention(): Promise<void> {
    await stage.store.history.rotate(stage.nowMs, 90 * dayMs);
    const options = { url: pooler.url, schema: stage.schema, connectionsMax: 1 };
    const { log, lines } = recordingLog();
    const database = new Database({ ...options, clock: systemClock, random: systemRandom, log });
    const reader = new pg.Client({ connectionString: pooler.url });
    // Without a listener, the error of a pooler that crashed would end the process; the next statement reports it anyway.
    reader.on("error", () => undefined);
    const laterMs = stage.nowMs + 30 * dayMs;
    try {
      await reader.connect();
      await reader.query(`begin; select count(*) from ${stage.schema}.attempt`);
      const { dropped } = await historyStore(database, 500).rotate(laterMs, 20 * dayMs);
      expect(dropped.length).toBeGreaterThan(10);
      expect(lines.map(({ message }) => message)).toEqual([expect.stringContaining("kept for now")]);
      await reader.query("commit");
      const stores = await Promise.all([stage.another(), stage.another()]);
      const rotated = await Promise.all(stores.map((store) => store.history.rotate(laterMs, 20 * dayMs)));
      const late = rotated.flatMap((one) => one.dropped);
      expect(late).toContain(dayName("attempt", stage.nowMs));
      expect(new Set(late).size).toBe(late.length);
      await stage.store.history.rotate(stage.nowMs, 90 * dayMs);
    } finally {
      await reader.end();
      await database.close();
    }
  }

  it("is detected by doctor", async () => {
    const { server: facts, cluster } = await inspectPostgres(pooler.url, stage.schema);
    expect(facts.pooling).toBe("transaction");
    expect(cluster).toBeDefined();
    expect(checkServer(facts, "here", stage.schema).find(({ what }) => what === "pooler")).toMatchObject({
      verdict: "remark",
      found: expect.stringContaining("transaction mode"),
      advice: expect.stringContaining("listenUrl"),
    });
  });

  it("runs continue after the pooler is restarted", async () => {
    const { log, lines } = recordingLog();
    const tower = node({ log });
    const ended = new Set<number>();
    const task = tower.task("after", {}, (run) => void ended.add(run.id));
    await tower.start();
    try {
      const runs = async () => {
        const { runId } = await task.enqueue();
        await until("its run to end", () => ended.has(runId));
      };
      await runs();
      await pooler.kill();
      const enqueued = task.enqueue();
      await until("it to be told", () => lines.some(({ message }) => message.includes("the store is away")));
      await pooler.up();
      const { runId } = await enqueued;
      await until("its run to end", () => ended.has(runId));
      await runs();
    } finally {
      await tower.stop();
    }
  });
});

describe.each(everyPostgres())("through PgBouncer in session mode, $title", (server) => {
  let pooler: Pgbouncer;
  let stage: Stage;
  beforeAll(async () => {
    ({ pooler, stage } = await pooled(server, "session", 40));
  });
  afterAll(async () => {
    await stage?.close();
    await pooler?.kill();
  });

  it("signals arrive by LISTEN and statements are prepared by name, once the mode is proven", async () => {
    const { log, lines } = recordingLog();
    const tower = carillon({
      store: pooler.url,
      schema: stage.schema,
      handleSignals: false,
      sessionTimeout: "1m",
      log,
    });
    const begun = new Set<number>();
    tower.task("in-session", {}, (run) => void begun.add(run.id));
    await tower.start();
    try {
      const session = "signals come by LISTEN through the pooler, which is in session mode";
      await until("the proof", () => lines.some(({ message }) => message === session));
      expect(await begunBetweenBeats(stage, { name: "in-session", begun, runs: 20 })).toBeGreaterThanOrEqual(5);
      expect((await inspectPostgres(pooler.url, stage.schema)).server.pooling).toBe("session");
    } finally {
      await tower.stop();
    }
    const database = new Database({ url: pooler.url, schema: stage.schema, connectionsMax: 1, ...surroundings });
    try {
      const prepared = async (name: string) => {
        const [row] = await database.query<{ n: number }>(
          name,
          "select count(*)::int as n from pg_prepared_statements",
        );
        return row?.n;
      };
      expect(await prepared("before")).toBe(0);
      database.inSessionMode();
      expect(await prepared("after")).toBe(1);
    } finally {
      await database.close();
    }
  });
});
