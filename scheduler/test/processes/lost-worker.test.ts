import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import { type Carillon, carillon } from "../../src/index.ts";
import type { RunRecord } from "../../src/run/run-record.ts";
import { StoreProxy } from "../support/proxy.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";
import { wholeLines } from "../support/whole-lines.ts";

interface Line {
  kind: "start" | "step" | "abort" | "end";
  run: number;
  attempt: number;
  node: string;
  at: number;
  why?: string;
}

const program = fileURLToPath(new URL("../support/programs/handlers.mjs", import.meta.url));
const main = fileURLToPath(new URL("../../lib/cli.js", import.meta.url));
const patienceMs = 120_000;

describe("a lost worker, in separate processes", () => {
  const schema = `lost_${process.pid}`;
  const folder = mkdtempSync(join(tmpdir(), "carillon-lost-"));
  const log = join(folder, "log");
  const database = new pg.Client({ connectionString: postgres().url });
  const children = new Map<string, ChildProcess>();
  let proxy: StoreProxy;
  /** An instance without a worker, with which the test reads the store and enqueues runs. */
  let tower: Carillon;

  beforeAll(async () => {
    await database.connect();
    proxy = await StoreProxy.before(postgres().url);
    tower = carillon({ store: postgres().url, schema, worker: false, handleSignals: false });
    await start("first", proxy.url);
  }, 60_000);
  afterAll(async () => {
    for (const child of children.values()) child.kill("SIGKILL");
    await tower.stop();
    await proxy.close();
    await database.query(`drop schema if exists ${schema} cascade`);
    await database.end();
    rmSync(folder, { recursive: true });
  });

  async function start(name: string, store = postgres().url): Promise<void> {
    const config = JSON.stringify({ store, schema, name, log });
    const child = spawn(process.execPath, [program], {
      env: { ...process.env, CARILLON_TEST_PROGRAM: config },
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.set(name, child);
    await once(child.stdout as NodeJS.ReadableStream, "data");
  }
  /** Writes the state of the store and the output of both nodes to the test's output; called when the test fails. */
  async function explain(): Promise<void> {
    const rows = async (text: string) => JSON.stringify((await database.query(text)).rows, null, 1);
    const tail = (file: string) =>
      existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(-60).join("\n") : "";
    process.stderr.write(
      [
        `now ${new Date().toISOString()}`,
        ...[...children].map(([name, { pid, exitCode, signalCode }]) => `${name}: ${pid} ${exitCode} ${signalCode}`),
        "sessions",
        await rows(`select id, node, beat, seen_ms, ended_ms, ended_why, swept from ${schema}.session order by id`),
        "leader",
        await rows(`select * from ${schema}.leadership`),
        "runs",
        await rows(`select id, state, attempt, session_id, fence, due_ms, started_ms, recall from ${schema}.run`),
        "history",
        await rows(
          `select id, outcome, attempt, session_id, claimed_ms, started_ms, ended_ms from ${schema}.run_history`,
        ),
        "attempts",
        await rows(`select * from ${schema}.attempt`),
        "connections",
        await rows(
          `select pid, state, wait_event_type, wait_event, application_name, xact_start, state_change, pg_blocking_pids(pid) as blocked_by,
           left(query, 200) as query from pg_stat_activity where datname = current_database()`,
        ),
        "locks",
        await rows("select pid, locktype, relation::regclass, mode, granted from pg_locks where not granted"),
        "handlers",
        ...wholeLines(log).filter((line) => !line.includes('"step"')),
        ...[...children.keys()].flatMap((name) => [`log of ${name}`, tail(`${log}.${name}`)]),
        "",
      ].join("\n"),
    );
  }
  const lines = (run: number): Line[] =>
    wholeLines(log)
      .filter((line) => line.includes(`"run":${run},`))
      .map((line) => JSON.parse(line) as Line);
  const seen = (run: number, kind: Line["kind"], attempt: number) =>
    lines(run).find((line) => line.kind === kind && line.attempt === attempt);
  const begun = (run: number, attempt: number) =>
    until(`attempt ${attempt} of run ${run}`, () => seen(run, "start", attempt) !== undefined, patienceMs);
  const carillonCommand = async (...words: string[]) =>
    (await promisify(execFile)(process.execPath, [main, ...words, "--store", postgres().url, "--schema", schema]))
      .stdout;
  const enqueue = async (task: string, payload?: unknown) => (await tower.enqueue(task, payload)).runId;
  async function ended(run: number, state?: string): Promise<RunRecord> {
    const { store } = await tower.open();
    await until(`run ${run} to end`, async () => (await store.runs.find(run)).endedMs !== null, patienceMs);
    const found = await store.runs.find(run);
    if (state !== undefined) expect(found.state).toBe(state);
    return found;
  }
  /** Enqueues runs until the first node starts one, because either node may claim a run. @returns the id of that run */
  async function onFirst(task: string): Promise<number> {
    for (;;) {
      const run = await enqueue(task);
      await begun(run, 1);
      if (seen(run, "start", 1)?.node === "first") return run;
    }
  }
  /**
   * Brings three runs under way on the first node: two whose start is reported to the store, and one whose start is not. If a busy machine
   * delays the node for a second, the node doubts its session and stops its runs. Then the test tries with three further runs.
   */
  async function threeOnFirst(): Promise<{ known: number; asked: number; fresh: number }> {
    for (;;) {
      const [known, asked] = [await onFirst("long"), await onFirst("decided")];
      await Promise.all([reported(known), reported(asked)]);
      const fresh = await onFirst("long");
      if ([known, asked, fresh].every((run) => !lines(run).some(({ kind }) => kind === "abort" || kind === "end")))
        return { known, asked, fresh };
    }
  }
  const reported = (run: number) =>
    until(
      `run ${run} to be reported`,
      async () => {
        const { store } = await tower.open();
        return (await store.runs.find(run)).startedMs !== null;
      },
      patienceMs,
    );

  beforeEach(() => onTestFailed(explain));
  // A test that fails half-way must not leave a node cut off or suspended for the next test.
  afterEach(() => {
    proxy.heal();
    for (const child of children.values()) child.kill("SIGCONT");
  });

  test("cut off, its handlers are aborted before another worker starts; unstarted runs are not waited for", async () => {
    await start("second");
    const { known, asked, fresh } = await threeOnFirst();
    proxy.hang();
    for (const run of [known, fresh]) {
      await begun(run, 2);
      const [told, again] = [seen(run, "abort", 1) as Line, seen(run, "start", 2) as Line];
      expect(told).toMatchObject({ node: "first", why: "SESSION_LOST" });
      expect(again.node).toBe("second");
      expect(told.at, "told to stop before another starts").toBeLessThan(again.at);
      expect(lines(run).filter(({ kind, attempt, at }) => kind === "step" && attempt === 1 && at >= again.at)).toEqual(
        [],
      );
    }
    // Compares when the runs were taken back, not when they start again, because the second node may have no free slot for them.
    const takenBack = async (run: number) => {
      const of = `select ended_ms from ${schema}.attempt where run_id = $1 and attempt = 1`;
      return Number((await database.query(of, [run])).rows[0].ended_ms);
    };
    expect(await takenBack(fresh), "the grace is for what is known to have started").toBeLessThan(
      await takenBack(known),
    );
    proxy.heal();

    const { store } = await tower.open();
    await until(
      "the decision to be asked for",
      async () => (await store.runs.find(asked)).state === "undecided",
      patienceMs,
    );
    // The late verdict of the first node is refused and recorded, and the run does not start again meanwhile.
    await until("its late result", async () => (await store.flow.lateResults(asked)).length > 0, patienceMs);
    expect((await store.runs.list({ limit: 10, states: ["undecided"] })).map(({ runId }) => runId)).toContain(asked);
    expect(seen(asked, "start", 2)).toBeUndefined();
    expect(await carillonCommand("runs", "list")).toMatch(new RegExp(`${asked} +decided +\\? undecided`));
    expect(await carillonCommand("runs", "show", String(asked))).toMatch(
      /too late, refused\n.*first, fence \d+: succeeded/,
    );
    expect(await carillonCommand("runs", "decide", String(asked), "retry", "--reason", "it did nothing")).toBe(
      `run ${asked} will run again\n`,
    );
    await expect(carillonCommand("runs", "decide", String(asked), "maybe")).rejects.toThrow(/maybe/);
    expect((await ended(asked, "succeeded")).attempt).toBe(2);
  });

  test("stopped for longer than its session, it notices that before its handler's next step", async () => {
    const run = await enqueue("long");
    await reported(run);
    const holder = seen(run, "start", 1)?.node as string;
    children.get(holder)?.kill("SIGSTOP");
    await begun(run, 2);
    const wokenAt = Date.now();
    children.get(holder)?.kill("SIGCONT");
    await until("it to be told", () => seen(run, "abort", 1) !== undefined, patienceMs);
    expect(lines(run).filter(({ kind, attempt, at }) => kind === "step" && attempt === 1 && at > wokenAt)).toEqual([]);
    await ended(run, "succeeded");
    const { store } = await tower.open();
    await until("its late result", async () => (await store.flow.lateResults(run)).length > 0, patienceMs);
    const [refused] = await store.flow.lateResults(run);
    const accepted = await store.runs.find(run);
    expect(accepted.result).toEqual({ by: accepted.node });
    expect(accepted.node).not.toBe(holder);
    expect(refused).toMatchObject({ node: holder });
    expect(refused?.fence).toBeLessThan(accepted.fence as number);
  });

  test("a handler that blocks its event loop loses its runs to other workers, and the log gives the reason", async () => {
    const run = await enqueue("blocks");
    expect(await ended(run, "succeeded")).toMatchObject({ attempt: 2 });
    const { store } = await tower.open();
    expect(await store.runs.attempts(run)).toMatchObject([{ outcome: "lost", error: { code: "WORKER_LOST" } }]);
    await until(
      "the log",
      async () =>
        (await store.runs.logs(run, 10)).some(
          ({ attempt, message }) => attempt === 1 && /stood still for \d+ ms/.test(message),
        ),
      patienceMs,
    );
  });

  test.each([false, true])(
    "a handler that always blocks its event loop is named as the cause after three losses; checks its signal: %s",
    async (looks) => {
      const run = await enqueue("poison", { looks });
      const given = await ended(run, "failed");
      writeFileSync(`${log}.over.${run}`, "");
      expect(given).toMatchObject({
        error: { code: "WORKER_LOST", message: expect.stringContaining("the cause of lost workers") },
      });
      expect(given.attempt).toBeLessThanOrEqual(3);
    },
  );

  test("a handler that throws a non-Error value fails with that value as text", async () => {
    for (const [thrown, text] of [
      ["just words", "just words"],
      [null, "null"],
      [{ why: "an object" }, '{"why":"an object"}'],
      [42, "42"],
    ]) {
      expect(await ended(await enqueue("throws", thrown), "failed")).toMatchObject({ error: { message: text } });
    }
  });

  test("a handler that exits its process fails only its own run, with WORKER_LOST", async () => {
    const run = await enqueue("exits");
    await begun(run, 1);
    const other = await enqueue("throws", "still here");
    expect(await ended(run, "failed")).toMatchObject({ attempt: 1, error: { code: "WORKER_LOST" } });
    expect(await ended(other, "failed")).toMatchObject({ error: { message: "still here" } });
  });
});
