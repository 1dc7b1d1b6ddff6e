/**
 * Tests processes whose event loop is blocked. In some tests it is blocked for 13 s with a session timeout of 6 s; these tests run
 * concurrently, because their processes mostly wait. In the others it is blocked until the `standstill` bound of 5 s has ended the session;
 * these run alone. A shorter bound could also be exceeded when a busy machine delays a process.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { ownPath, sharedServer } from "../../../zookeeper/test/support/servers.ts";
import { carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import { Programs, readSeen, type Seen } from "../support/programs.ts";
import { RemoteStage } from "../support/remote-stage.ts";
import { postgres, redis } from "../support/servers.ts";
import { numbers, recordingLog, until } from "../support/store-stage.ts";

const ways = [
  { by: "the store alone", coordination: () => undefined },
  { by: "ZooKeeper", coordination: () => `zookeeper://${sharedServer()}${ownPath("standstill")}` },
  { by: "Redis", coordination: () => `${redis().url}?prefix=standstill-${process.pid}` },
];
const sessionTimeout = "6s";
/** How long a handler blocks the event loop, in ms: longer than twice the session timeout of 6 s. */
const computesMs = 13_000;

let made = 0;

/** Prepares a schema for the processes of one test, and a file in which the processes record their runs. */
async function openCluster() {
  const schema = `standstill_${process.pid}_${made++}`;
  const folder = mkdtempSync(join(tmpdir(), "carillon-standstill-"));
  const log = join(folder, "seen.log");
  const programs = new Programs();
  const database = new pg.Client({ connectionString: postgres().url, types: numbers });
  await database.connect();

  const rows = async (text: string) => (await database.query(text.replaceAll("$s", schema))).rows;
  const start = (name: string, more: Partial<Parameters<Programs["start"]>[0]> = {}) =>
    programs.start({ store: postgres().url, schema, name, tasks: 0, log, handlerMs: 5, ...more });
  const seen = (kind: Seen["kind"], task: string) =>
    readSeen(log).filter((one) => one.kind === kind && one.task === task);
  const compute = async (long: number | { until: string }) => {
    const client = carillon({ store: postgres().url, schema, handleSignals: false, log: recordingLog().log });
    await client.enqueue("computing", long);
    await client.stop();
    await until("it to compute", () => seen("start", "computing").length > 0);
  };

  const computed =
    "select outcome, attempt from $s.run_history h join $s.task t on t.id = h.task_id where t.name = 'computing'";
  const bothRun = () => new Set(readSeen(log).map(({ node }) => node)).size === 2;

  /**
   * The process "still" blocks its event loop for twice its session timeout, while the process "other" continues.
   * @param shown whether the test waits until the store shows that the process is blocked
   */
  const standsStill = async ({ shown = true } = {}): Promise<void> => {
    await compute(computesMs);
    const beganMs = Date.now();
    if (shown)
      await until("others to see it stand still", async () => {
        const [row] = await rows("select still_ms from $s.session where node = 'still'");
        return row.still_ms > 1_000;
      });
    await until("it to end", () => seen("end", "computing").length > 0);
    const endedMs = Date.now();
    const beside = () => readSeen(log).filter(({ kind, task }) => kind === "start" && task !== "computing");
    // "other" continued to start runs while "still" was blocked.
    expect(beside().some(({ node, slot, at }) => node === "other" && slot > beganMs && at < endedMs)).toBe(true);
    const due = async () =>
      (await rows("select t.name, l.slot_ms from $s.slot l join $s.task t on t.id = l.task_id"))
        .filter(({ slot_ms: slot }) => slot > beganMs && slot < endedMs)
        .map(({ name, slot_ms: slot }) => `${name} ${slot}`);
    const begun = () => beside().map(({ task, slot }) => `${task} ${slot}`);
    await until("all that was due meanwhile to start", async () => {
      const started = new Set(begun());
      return (await due()).every((key) => started.has(key));
    });
    // There are 20 tasks with one slot per second each.
    expect((await due()).length).toBeGreaterThanOrEqual(20 * Math.floor((endedMs - beganMs) / 1_000 - 1));
    const all = begun();
    expect(new Set(all).size, "no slot twice").toBe(all.length);
    await until(
      "both to be seen at work again",
      async () =>
        (await rows("select from $s.session where node in ('still', 'other') and still_ms is null")).length === 2,
    );

    expect(await rows("select node from $s.session where ended_ms is not null")).toEqual([]);
    expect(await rows("select * from $s.attempt where outcome = 'lost'")).toEqual([]);
    expect(seen("start", "computing")).toHaveLength(1);
    await until("its run to be in the history", async () => (await rows(computed)).length > 0);
    expect(await rows(computed)).toEqual([{ outcome: 0, attempt: 1 }]);
  };

  return {
    schema,
    programs,
    rows,
    start,
    seen,
    compute,
    // Each attempt of the task blocks until a file exists whose name is this path, a hyphen and the attempt's number.
    release: join(folder, "release"),
    computed,
    bothRun,
    standsStill,
    records: () => readSeen(log),
    async [Symbol.asyncDispose]() {
      await programs.endAll();
      await database.query(`drop schema if exists ${schema} cascade`);
      await database.end();
      rmSync(folder, { recursive: true });
    },
  };
}

describe("a process with a blocked event loop", () => {
  it.concurrent.each(ways)(
    "keeps its session and its runs while other processes run all other work: coordinated by $by",
    async ({ coordination }) => {
      await using cluster = await openCluster();
      const options = { coordination: coordination(), sessionTimeout };
      await cluster.start("still", { tasks: 20, computing: {}, options });
      await cluster.start("other", { tasks: 20, options });
      await until("both to run tasks", cluster.bothRun);
      await cluster.standsStill();
    },
  );

  it.concurrent("keeps its session and its runs if it is a worker that connects to servers over HTTP", async () => {
    await using cluster = await openCluster();
    const stage = new RemoteStage(cluster.schema);
    try {
      await stage.serve();
      for (let i = 0; i < 20; i++)
        await stage.task(`${i % 2 === 0 ? "again" : "once"}-${i}`, { schedule: every("1s") });
      await stage.task("computing", { group: "computing" });
      const key = await stage.key("both", ["default", "computing"]);
      const remote = { server: stage.urlOf(), key, sessionTimeout };
      await cluster.start("still", { tasks: 20, computing: {}, remote });
      await cluster.start("other", { tasks: 20, remote: { ...remote, groups: ["default"] } });
      await until("both to run tasks", cluster.bothRun);
      await cluster.standsStill({ shown: false });
    } finally {
      await cluster.programs.endAll();
      await stage.close();
    }
  });

  it("is declared dead after the limit, its running tasks are named, and the run fails after its allowed losses", async () => {
    await using cluster = await openCluster();
    const computing = { retry: { attempts: 1 }, workerLosses: 2 };
    // The bound on blocking, not the session timeout, must end the session. The timeout is long because on a busy machine the stand-in
    // thread needs time to reach the store.
    await cluster.start("still", { computing, options: { standstill: "5s", sessionTimeout: "20s" } });
    await cluster.start("other", { tasks: 2 });
    const ends = () => cluster.rows("select ended_why from $s.session where node = 'still' and ended_ms is not null");
    await cluster.compute({ until: cluster.release });
    // Each attempt blocks until the store has taken its run back, however long that takes on a busy machine.
    await until(
      "the first try to be lost",
      async () => (await cluster.rows("select from $s.attempt where outcome = 'lost'")).length > 0,
    );
    writeFileSync(`${cluster.release}-1`, "");
    await until(
      "it to be given up",
      // A run in "other" may end in the same way if a busy machine suspends that process for longer than its session timeout.
      async () => (await cluster.rows(`${cluster.computed} and error->>'code' = 'WORKER_LOST'`)).length > 0,
    );
    expect(cluster.seen("start", "computing").map(({ attempt }) => attempt)).toEqual([1, 2]);
    const ended = await ends();
    expect(ended.length).toBeGreaterThanOrEqual(2);
    for (const { ended_why: why } of ended)
      expect(why).toMatch(/^its event loop stood still for more than 5 s; under way: computing \(run \d+\)$/);
  });

  it("starts no run that was taken back: three processes that block now and then fire each slot once", async () => {
    await using cluster = await openCluster();
    const names = ["one", "two", "three"];
    await Promise.all(names.map((name) => cluster.start(name, { tasks: 30, computesMs: [120, 620] })));
    const keysOf = () =>
      cluster.records().flatMap(({ kind, task, slot }) => (kind === "start" ? [`${task} ${slot}`] : []));
    await until("some 300 to start", () => keysOf().length > 300);
    await Promise.all(names.map((name) => cluster.programs.end(name, "SIGTERM")));
    const keys = keysOf();
    expect(new Set(keys).size).toBe(keys.length);
    expect(await cluster.rows("select * from $s.attempt where outcome = 'lost'")).toEqual([]);
    expect(await cluster.rows("select from $s.run_history where outcome > 0")).toEqual([]);
  });
});
