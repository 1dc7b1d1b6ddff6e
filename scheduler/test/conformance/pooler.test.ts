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
const signalMostMs = 250;
const surroundings = { clock: systemClock, random: systemRandom, log: silentLog };

function atRank(values: number[], rank: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(rank * sorted.length))] as number;
}

async function recordOf(stage: Stage, name: string): Promise<TaskRecord> {
  const found = await stage.store.tasks.byName(name);
  if (!found) throw new Error(`there is no task ${name}`);
  return found;
}

/** The PostgreSQL behind a pooler, and the pooler. */
async function pooled(server: TestServer, mode: "transaction" | "session", poolSize: number) {
  const pooler = await Pgbouncer.before(server.direct, { mode, poolSize });
  return { pooler, stage: await openStage({ ...server, url: pooler.url }) };
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

  it("what the pooler refuses of the URL is told at once, and not taken for a store that is away", async () => {
    const url = `${pooler.url}${pooler.url.includes("?") ? "&" : "?"}options=${encodeURIComponent("-c work_mem=8MB")}`;
    await expect(openPostgres({ url, schema: stage.schema })).rejects.toMatchObject({
      code: "STORE_REFUSED",
      message: expect.stringContaining("unsupported startup parameter: options"),
      hint: expect.stringContaining("ALTER ROLE"),
    });
  });

  it("no statement is compiled, though the server would compile whatever it takes for costly", async () => {
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

  it("runs of many callers are claimed and ended, once each; those of callers' transactions as these end", async () => {
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
      await until("all to end", async () => (await ended()) === 310, 30_000);
      for (const runId of enqueued) expect(runs.get(runId)).toBe(runId % 10 === 0 ? 2 : 1);
      expect(runs.size).toBe(310);
      expect(complaints(lines)).toEqual([]);
      await until("it to say how signals come", () => lines.some(({ message }) => /signals are polled/.test(message)));
    } finally {
      await Promise.all(towers.map((tower) => tower.stop()));
      await pool.end();
    }
  });

  it("two nodes fire each slot of a schedule once, in time", async () => {
    const towers = [node(), node()];
    const late = new Map<number, number[]>();
    for (const tower of towers)
      tower.task("ticks", { schedule: every("200ms") }, (run) => {
        const slotMs = run.slot?.getTime() ?? Number.NaN;
        late.set(slotMs, [...(late.get(slotMs) ?? []), Date.now() - slotMs]);
      });
    try {
      await Promise.all(towers.map((tower) => tower.start()));
      await until("slots to fire", () => late.size >= 25, 20_000);
    } finally {
      await Promise.all(towers.map((tower) => tower.stop()));
    }
    const slots = [...late.keys()].sort((a, b) => a - b);
    expect(slots.slice(1).map((slotMs, at) => slotMs - (slots[at] as number))).toEqual(slots.slice(1).map(() => 200));
    expect([...late.values()].filter((times) => times.length !== 1)).toEqual([]);
  });

  it(`signals are heard within ${signalMostMs} ms of their commit, whatever commits before them`, async () => {
    const [speaker, listener] = [await stage.another(), await stage.another()];
    const task = await stage.task("told");
    const listening = new AbortController();
    const heard = new Map<number, number>();
    let ready = false;
    const listened = listener.signals.listen((signal) => {
      if (signal.kind === "resync") ready = true;
      if ((signal.kind === "ready" || signal.kind === "direct") && !heard.has(signal.dueMs))
        heard.set(signal.dueMs, performance.now());
    }, listening.signal);
    await until("it to listen", () => ready);
    // This one begins to write before all others, and commits after them.
    const slow = new pg.Client({ connectionString: pooler.url });
    await slow.connect();
    await slow.query("begin");
    const slowMs = stage.nowMs - 5_000;
    await slow.query(`select ${stage.schema}.tell('ready ' || $1::bigint)`, [slowMs]);
    const committed = new Map<number, number>();
    for (let at = 0; at < 100; at++) {
      const dueMs = stage.nowMs - at;
      await speaker.runs.enqueue([stage.write(task, { dueMs })], dueMs);
      committed.set(dueMs, performance.now());
      await new Promise((resolve) => setTimeout(resolve, at % 20));
    }
    expect(heard.has(slowMs)).toBe(false);
    await slow.query("commit");
    committed.set(slowMs, performance.now());
    await slow.end();
    await until("all to be heard", () => [...committed.keys()].every((dueMs) => heard.has(dueMs)));
    const late = [...committed].map(([dueMs, atMono]) => (heard.get(dueMs) as number) - atMono);
    listening.abort();
    await listened;
    expect(atRank(late, 0.99)).toBeLessThan(signalMostMs);
  });

  it("signals come at once where listenUrl leads to the server", async () => {
    const { log, lines } = recordingLog();
    const tower = node({ log, listenUrl: server.direct });
    const begun = new Map<number, number>();
    const task = tower.task("at-once", {}, (run) => void begun.set(run.id, performance.now()));
    await tower.start();
    const speaker = await stage.another();
    try {
      const late: number[] = [];
      const record = await recordOf(stage, "at-once");
      expect(task.name).toBe(record.name);
      for (let at = 0; at < 30; at++) {
        const [made] = await speaker.runs.enqueue([stage.write(record)], stage.nowMs);
        const committedMono = performance.now();
        const runId = (made as { runId: number }).runId;
        await until("it to begin", () => begun.has(runId));
        late.push((begun.get(runId) as number) - committedMono);
      }
      expect(atRank(late, 0.5)).toBeLessThan(150);
      expect(lines.map(({ message }) => message)).toContain("signals come by LISTEN at listenUrl");
    } finally {
      await tower.stop();
    }
  });

  it("a lock is one process's at a time, and the next one has it as soon as it is let go", async () => {
    const towers = [node(), node(), node()];
    try {
      let holders = 0;
      let most = 0;
      const turns = towers.flatMap((tower) =>
        Array.from({ length: 3 }, async () => {
          const held = await tower.lock("one-at-a-time").acquire({ wait: "30s" });
          most = Math.max(most, ++holders);
          await new Promise((resolve) => setTimeout(resolve, 10));
          holders--;
          await held.release();
        }),
      );
      const began = performance.now();
      await Promise.all(turns);
      expect(most).toBe(1);
      expect(performance.now() - began).toBeLessThan(9 * 1_000);
    } finally {
      await Promise.all(towers.map((tower) => tower.stop()));
    }
  });

  it("what is past its retention goes, by one of many nodes, and a reader only delays it", () =>
    pooler.besideCrashes(retention));

  async function retention(): Promise<void> {
    await stage.store.history.rotate(stage.nowMs, 90 * dayMs);
    const options = { url: pooler.url, schema: stage.schema, connectionsMax: 1 };
    const { log, lines } = recordingLog();
    const database = new Database({ ...options, clock: systemClock, random: systemRandom, log });
    const reader = new pg.Client({ connectionString: pooler.url });
    // The pooler may crash: what is asked of it next tells.
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

  it("is what doctor finds", async () => {
    const { server: facts, cluster } = await inspectPostgres(pooler.url, stage.schema);
    expect(facts.pooling).toBe("transaction");
    expect(cluster).toBeDefined();
    expect(checkServer(facts, "here", stage.schema).find(({ what }) => what === "pooler")).toMatchObject({
      verdict: "remark",
      found: expect.stringContaining("transaction mode"),
      advice: expect.stringContaining("listenUrl"),
    });
  });

  it("runs go on when the pooler was started anew", async () => {
    const { log, lines } = recordingLog();
    const tower = node({ log });
    const ended = new Set<number>();
    const task = tower.task("after", {}, (run) => void ended.add(run.id));
    await tower.start();
    try {
      const runs = async () => {
        const { runId } = await task.enqueue();
        await until("its run to end", () => ended.has(runId), 20_000);
      };
      await runs();
      await pooler.kill();
      const enqueued = task.enqueue();
      await until("it to be told", () => lines.some(({ message }) => message.includes("the store is away")), 20_000);
      await pooler.up();
      const { runId } = await enqueued;
      await until("its run to end", () => ended.has(runId), 20_000);
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

  it("signals come by LISTEN and statements are prepared by name, once the mode is proven", async () => {
    const { log, lines } = recordingLog();
    const tower = carillon({ store: pooler.url, schema: stage.schema, handleSignals: false, log });
    const begun = new Map<number, number>();
    tower.task("in-session", {}, (run) => void begun.set(run.id, performance.now()));
    await tower.start();
    try {
      const session = "signals come by LISTEN through the pooler, which is in session mode";
      await until("the proof", () => lines.some(({ message }) => message === session));
      const record = await recordOf(stage, "in-session");
      const late: number[] = [];
      for (let at = 0; at < 20; at++) {
        const runId = await stage.enqueue(record);
        const committedMono = performance.now();
        await until("it to begin", () => begun.has(runId));
        late.push((begun.get(runId) as number) - committedMono);
      }
      expect(atRank(late, 0.5)).toBeLessThan(150);
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
