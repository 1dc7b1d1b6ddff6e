import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { carillon } from "../../src/library/carillon.ts";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { goOnAbove } from "../../src/store/postgres/recovery/restored.ts";
import { withDatabase } from "../../src/store/postgres/with-database.ts";
import type { Store } from "../../src/store/store.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { RestorableStore } from "../support/restorable-store.ts";
import { sql } from "../support/standby.ts";
import {
  change,
  dayMs,
  openStage,
  recordingLog,
  type Stage,
  settlement,
  succeededVerdict,
  until,
} from "../support/store-stage.ts";

const hourMs = 3_600_000;
/** Fewer enqueues than the numbers in one block. Drawing a new block waits for the disk, which would also write all earlier enqueues. */
const few = 20;
const relaxed = { durability: "relaxed" } as const;

/** The server writes its log to disk only when a commit waits for it, so a crash loses relaxed enqueues. */
describe("relaxed enqueues and a crash of the server", () => {
  let server: RestorableStore;
  let stage: Stage;
  let task: TaskRecord;
  const mortals: AbortController[] = [];

  beforeAll(async () => {
    server = await RestorableStore.start();
    await sql(server, "alter system set autovacuum = off");
    await sql(server, "alter system set checkpoint_timeout = '1d'");
    await sql(server, "select pg_reload_conf()");
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    stage = await openStage({ title: "own", url: server.url, direct: server.url });
    task = await stage.task("t");
    await server.holdLog();
  });
  afterEach(async () => {
    await allMortalsDie();
    await stage.close();
  });

  /** Opens the store for a process that the test lets die while the server is down, so that the enqueues that it remembers are lost. */
  const mortal = async (): Promise<Store> => {
    const death = new AbortController();
    mortals.push(death);
    return openPostgres({ url: server.url, schema: stage.schema, abandon: death.signal });
  };
  const allMortalsDie = async () => {
    for (const death of mortals.splice(0)) death.abort();
  };
  const later = (write = {}) => stage.write(task, { dueMs: stage.nowMs + hourMs, ...write });
  const enqueueIn = async (store: Store, write = {}) =>
    (await store.runs.enqueue([later(write)], stage.nowMs))[0] as { runId: number; created: boolean };
  /** Enqueues runs one after the other, after one that draws their numbers. @returns their numbers */
  const enqueueFew = async (store: Store, write = {}) => {
    await enqueueIn(store);
    const ids: number[] = [];
    for (let n = 0; n < few; n++) ids.push((await enqueueIn(store, write)).runId);
    return ids;
  };
  const present = async (ids: number[]) =>
    (await stage.rows<{ id: number }>("select id from $s.run where id = any($1) order by id", [ids])).map(
      ({ id }) => id,
    );
  const recoveries = () =>
    stage.rows(
      "select number, ended_ms is not null as over, runs > 0 as put, back_ms from $s.recovery order by number",
    );
  /** Returns true if a commit of `work` has waited for the disk: then the log is written beyond the place where it was before. */
  const waitsForDisk = async (work: () => Promise<unknown>): Promise<boolean> => {
    const { before } = await stage.one<{ before: string }>("select pg_current_wal_insert_lsn()::text as before");
    await work();
    const text = "select pg_current_wal_flush_lsn() > $1::pg_lsn as waited";
    return (await stage.one<{ waited: boolean }>(text, [before])).waited;
  };

  /** Kills one process of the server. Resolves when the server has ended all others too, which it then starts again. */
  const killOneBackend = async () => {
    const [victim, other] = [
      new pg.Client({ connectionString: server.url }),
      new pg.Client({ connectionString: server.url }),
    ];
    for (const client of [victim, other]) {
      client.on("error", () => undefined); // both are ended by the server
      await client.connect();
    }
    const { rows } = await victim.query("select pg_backend_pid() as pid");
    const ended = new Promise((resolve) => other.once("end", resolve));
    process.kill(rows[0].pid, "SIGKILL");
    server.endHeld();
    await ended;
  };

  it("are put back by the process that enqueued them, each once, under its number", async () => {
    await stage.session();
    const ids = await enqueueFew(stage.store, relaxed);
    await server.crash();
    const after = await enqueueIn(stage.store);
    expect(await present([...ids, after.runId])).toEqual([...ids, after.runId]);
    expect(await recoveries()).toEqual([{ number: 1, over: true, put: true, back_ms: 0 }]);
    await server.crash();
    await enqueueIn(stage.store);
    expect(await present([...ids, after.runId]), "after a second crash").toEqual([...ids, after.runId]);
    expect(await recoveries()).toHaveLength(2);
  });

  it("are put back after the crash of a single process of the server, which does not change its start time", async () => {
    const { log, lines } = recordingLog();
    const store = await stage.another({ log });
    const started = "select pg_postmaster_start_time()::text as at";
    const before = await stage.one(started);
    const ids = await enqueueFew(store, relaxed);
    await killOneBackend();
    await enqueueIn(store);
    expect(await present(ids)).toEqual(ids);
    expect(await stage.one(started)).toEqual(before);
    expect(await recoveries()).toMatchObject([{ over: true, put: true }]);
    expect(lines.map(({ message }) => message)).toContain(
      "the store's server crashed: work waits until the processes have reported the relaxed enqueues that it may lack",
    );
  });

  it("are put back by a process that does nothing else, as soon as the server is back", async () => {
    const store = await stage.another();
    const ids = await enqueueFew(store, relaxed);
    await server.crash();
    await until("the runs are back", async () => (await present(ids)).length === ids.length);
    await until("the recovery is over", async () => Boolean((await recoveries())[0]?.over));
    expect(await recoveries()).toHaveLength(1);
  });

  it.each([
    {
      days: 2,
      back: false,
      title: "are not put back after days, because nothing may show any more that their runs have ended",
    },
    { days: 0.9, back: true, title: "are put back however long the server was away, up to a day" },
  ])("$title", async ({ days, back }) => {
    let aheadMs = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs };
    const store = await openPostgres({ url: server.url, schema: stage.schema, clock });
    const { runId } = await enqueueIn(store, relaxed);
    await stage.rows("delete from $s.run where id = $1", [runId]);
    aheadMs = days * dayMs;
    await server.crash();
    await until("the recovery is over", async () => Boolean((await recoveries())[0]?.over));
    await store.close();
    expect(await present([runId])).toEqual(back ? [runId] : []);
  });

  it("that are under way as the server crashes make one run each", async () => {
    const payloads = Array.from({ length: 500 }, (_, n) => n);
    const enqueued = payloads.map((n) =>
      enqueueIn(stage.store, { ...relaxed, payload: String(n), key: n % 2 === 0 ? `k${n}` : null }),
    );
    await enqueued[100];
    await server.crash();
    await Promise.all(enqueued);
    const rows = await stage.rows<{ n: number }>("select payload::int as n from $s.run order by 1");
    expect(rows.map(({ n }) => n)).toEqual(payloads);
  });

  it("are lost if the process dies with the server; full enqueues are not, also where they found a relaxed run", async () => {
    const [one, two] = [await mortal(), await mortal()];
    const [full] = await enqueueFew(one);
    await enqueueIn(two);
    const found = await enqueueIn(one, { ...relaxed, key: "found" });
    expect(await enqueueIn(two, { key: "found" }), "acknowledged with the other's run").toEqual({
      runId: found.runId,
      created: false,
    });
    const both = await enqueueIn(one, { ...relaxed, key: "both" });
    expect(await enqueueIn(two, { ...relaxed, key: "both" })).toEqual({ runId: both.runId, created: false });
    const lost = await enqueueIn(one, { ...relaxed, key: "lost" });
    await server.crash(allMortalsDie);
    const { runId } = await enqueueIn(stage.store);
    expect(runId - lost.runId, "numbers jump").toBeGreaterThan(1_000_000);
    const ids = [full as number, found.runId, both.runId];
    expect(await present([...ids, lost.runId])).toEqual(ids);
  });

  it("that a worker of the process has begun keep their claims: the end is accepted, and no fence comes twice", async () => {
    const session = await stage.session("worker");
    const claimed: ClaimedRun[] = [];
    const local = {
      sessionId: session,
      groupIds: [task.groupId],
      untilMs: stage.nowMs,
      room: 10,
      made: (runs: ClaimedRun[]) => void claimed.push(...runs),
      lost: () => undefined,
    };
    await enqueueIn(stage.store);
    for (const write of [relaxed, { ...relaxed, key: "k" }])
      await stage.store.runs.enqueue([stage.write(task, write)], stage.nowMs, local);
    expect(claimed).toHaveLength(2);
    const ids = claimed.map(({ runId }) => runId);
    await server.crash();
    expect(await present(ids), "the crash lost the last at least").not.toContain(ids.at(-1));
    const ends = claimed.map((run) => settlement(run, succeededVerdict, stage.nowMs));
    expect(await stage.store.claims.settle(session, ends, stage.nowMs)).toEqual(new Set());
    const ended = await stage.rows("select id from $s.run_history where id = any($1) order by id", [ids]);
    expect(ended).toEqual(ids.map((id) => ({ id })));
    await stage.enqueue(task);
    const [next] = await stage.claim(session, [task]);
    expect((next as ClaimedRun).fence).toBeGreaterThan(Math.max(...claimed.map(({ fence }) => fence)));
  });

  it("do not wait for the disk; all others do, and those of a relaxed task that ask for it", async () => {
    const [fast, swift] = [await stage.task("fast", relaxed), await stage.task("swift", relaxed)];
    const { store } = stage;
    const of = (which: TaskRecord, write = {}) => later({ taskId: which.taskId, ...write });
    const waits = (...writes: ReturnType<typeof later>[]) =>
      waitsForDisk(() => store.runs.enqueue(writes, stage.nowMs));
    await store.runs.enqueue([of(task)], stage.nowMs);
    expect({
      relaxed: await waits(of(task, relaxed)),
      keyed: await waits(of(task, { ...relaxed, key: "k" })),
      "as its task": await waits(of(fast)),
      "keyed, as its task": await waits(of(fast, { key: "k" })),
      "of two relaxed tasks": await waits(of(fast), of(swift), of(fast, relaxed)),
    }).toEqual({
      relaxed: false,
      keyed: false,
      "as its task": false,
      "keyed, as its task": false,
      "of two relaxed tasks": false,
    });
    expect({
      full: await waits(of(task)),
      keyed: await waits(of(task, { key: "l" })),
      "full, of a relaxed task": await waits(of(fast, { durability: "full" })),
      "with a full one": await waits(of(task, relaxed), of(task)),
      "one of a relaxed task with one of another": await waits(of(fast), of(task)),
      "that replaces": await waitsForDisk(() =>
        store.runs.enqueueReplacing(of(task, { ...relaxed, key: "l", replaces: true }), stage.nowMs),
      ),
    }).toEqual({
      full: true,
      keyed: true,
      "full, of a relaxed task": true,
      "with a full one": true,
      "one of a relaxed task with one of another": true,
      "that replaces": true,
    });
  });

  it("are on the disk once their process has closed the store", async () => {
    const store = await openPostgres({ url: server.url, schema: stage.schema });
    const ids = await enqueueFew(store, relaxed);
    expect(await waitsForDisk(() => store.close())).toBe(true);
    await server.crash();
    expect(await present(ids)).toEqual(ids);
  });

  it.each([0, 1])(
    "are put back by a process that closes the store after a crash, when it has taken part in %i recoveries",
    async (before) => {
      const store = await openPostgres({ url: server.url, schema: stage.schema });
      for (let n = 0; n < before; n++) {
        await enqueueFew(store, relaxed);
        await server.crash();
        await enqueueIn(store);
      }
      const ids = await enqueueFew(store, relaxed);
      await server.crash();
      await store.close();
      expect(await present(ids)).toEqual(ids);
    },
  );

  it("are reported as perhaps not on the disk if their process stops while the server is down", async () => {
    const { log, lines } = recordingLog();
    const store = await openPostgres({ url: server.url, schema: stage.schema, log });
    await enqueueIn(store, relaxed);
    await server.crash(() => store.close());
    expect(lines).toContainEqual({
      level: "warn",
      message:
        "this process stops without an answer of the store: relaxed enqueues of the last moments may not be on its disk",
      fields: { error: expect.stringContaining("cannot be reached") },
    });
  });

  it("make `carillon restored` no less final: the restored store is whole", async () => {
    await enqueueIn(stage.store, relaxed);
    await server.backUp();
    await server.restore();
    const isWhole = async () => (await stage.one<{ whole: boolean }>("select $s.whole() as whole")).whole;
    expect(await isWhole()).toBe(false);
    await withDatabase({ url: server.url, schema: stage.schema }, (database) =>
      database.transaction((client) => goOnAbove(client, database.schema, stage.schema, change(stage.nowMs))),
    );
    expect(await isWhole()).toBe(true);
    expect(await enqueueIn(stage.store)).toMatchObject({ created: true });
  });

  it("are the only ones that a crash makes the processes compare", async () => {
    const { runId } = await enqueueIn(stage.store);
    await server.crash();
    const after = await enqueueIn(stage.store);
    expect(await present([runId, after.runId])).toEqual([runId, after.runId]);
    expect(await recoveries()).toEqual([]);
  });

  it("are recovered once: a process that waits while another ends the recovery does not begin the next", async () => {
    await enqueueIn(stage.store, relaxed);
    const other = new pg.Client({ connectionString: server.url });
    await other.connect();
    try {
      await stage.rows("delete from $s.intact");
      await other.query(`begin; select from "${stage.schema}".cluster for update`);
      const enqueued = enqueueIn(stage.store);
      await until("the process waits for the other", async () => {
        const waiters = await stage.rows(
          "select from pg_locks where not granted and locktype in ('transactionid', 'tuple')",
        );
        return waiters.length > 0;
      });
      await other.query(`insert into "${stage.schema}".intact default values; commit`);
      await enqueued;
      expect(await recoveries()).toEqual([]);
    } finally {
      await other.end();
    }
  });

  it("run once each in a cluster whose task is relaxed", async () => {
    const tower = carillon({ store: server.url, schema: stage.schema, handleSignals: false, sessionTimeout: "3s" });
    const began: number[] = [];
    const work = tower.task("work", relaxed, (_run, n: number) => void began.push(n));
    await tower.start();
    try {
      const payloads = Array.from({ length: 200 }, (_, n) => n);
      const handles = payloads.map((n) => work.enqueue(n));
      await handles[0];
      await server.crash();
      for (const handle of await Promise.all(handles)) await handle.result({ timeout: "60s" });
      expect(began.toSorted((a, b) => a - b)).toEqual(payloads);
      const ended = await stage.rows(
        "select payload::int as n from $s.run_history where payload is not null order by 1",
      );
      expect(ended).toEqual(payloads.map((n) => ({ n })));
    } finally {
      await tower.stop();
    }
  });
});
