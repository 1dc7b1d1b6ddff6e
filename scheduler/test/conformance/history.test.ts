import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { every } from "../../src/schedule/schedule.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { historyStore } from "../../src/store/postgres/tasks/history.ts";
import { everyPostgres } from "../support/servers.ts";
import {
  dayMs,
  openStage,
  recordingLog,
  type Stage,
  settlement,
  succeededVerdict,
  until,
} from "../support/store-stage.ts";

describe.each(everyPostgres())("history on $title", (server) => {
  let stage: Stage;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterAll(() => stage.close());

  const partitions = async (table: string) =>
    (
      await stage.rows<{ name: string }>(
        "select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = to_regclass($1) order by 1",
        [`${stage.schema}.${table}`],
      )
    ).map(({ name }) => name);
  const dayName = (table: string, ms: number) =>
    `${table}_${new Date(ms).toISOString().slice(0, 10).replaceAll("-", "")}`;

  async function endedRun(nowMs: number): Promise<number> {
    const task = await stage.task("ends");
    const runId = await stage.enqueue(task, {}, nowMs);
    const runs = await stage.claim(session, [task]);
    await stage.store.claims.settle(
      session,
      runs.map((run) => settlement(run, succeededVerdict, nowMs)),
      nowMs,
    );
    return runId;
  }

  it("has partitions for the past days with writes, for today and for a week ahead", async () => {
    for (const table of ["slot", "run_history", "attempt", "late_result", "run_log"]) {
      const names = await partitions(table);
      for (const days of [-1, 0, 1, 7]) expect(names).toContain(dayName(table, stage.nowMs + days * dayMs));
    }
    expect(await stage.store.history.rotate(stage.nowMs, 30 * dayMs)).toEqual({ created: [], dropped: [] });
  });

  it("opening the store drops nothing: a read-only process may have another retention", async () => {
    const agoMs = stage.nowMs - 400 * dayMs;
    const { created } = await stage.store.history.rotate(agoMs, null, 0);
    expect(created).toContain(dayName("run_history", agoMs));
    await stage.another();
    expect((await stage.store.history.rotate(stage.nowMs, null)).dropped).toEqual([]);
    expect((await stage.store.history.rotate(stage.nowMs, 30 * dayMs)).dropped).toContain(
      dayName("run_history", agoMs),
    );
  });

  it("creates new partitions and drops those past the retention while writers run", async () => {
    const runId = await endedRun(stage.nowMs);
    const stores = await Promise.all([stage.another(), stage.another()]);
    let writing = true;
    let written = 0;
    const writers = stores.map(async (store) => {
      const task = await stage.task("writer");
      while (writing) {
        // Rows with this time belong to a later day's partition, so the writers do not touch the partition that is dropped.
        const nowMs = stage.nowMs + 20 * dayMs;
        await store.runs.enqueue([stage.write(task)], nowMs);
        const request = {
          sessionId: session,
          groupIds: [task.groupId],
          exceptTaskIds: [],
          untilMs: stage.nowMs,
          limit: 5,
          nowMs,
        };
        const { runs } = await store.claims.claim(request);
        await store.claims.settle(
          session,
          runs.map((run) => settlement(run, succeededVerdict, stage.nowMs + 5 * dayMs)),
          nowMs,
        );
        written += runs.length;
      }
    });
    await until("writers write", () => written > 20);
    const before = written;
    const { created, dropped } = await stage.store.history.rotate(stage.nowMs + 20 * dayMs, 16 * dayMs);
    expect(created).toContain(dayName("slot", stage.nowMs + 27 * dayMs));
    expect(dropped).toContain(dayName("run_history", stage.nowMs));
    expect(dropped).not.toContain(dayName("run_history", stage.nowMs + 5 * dayMs));
    await until("writers go on", () => written > before + 20);
    writing = false;
    await Promise.all(writers);
    await expect(stage.store.runs.find(runId)).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
    expect((await stage.one("select count(*) as n from $s.run_history")).n).toBe(written);
    await stage.store.history.rotate(stage.nowMs, 60 * dayMs);
  });

  it("concurrent clean-ups by many nodes do not make each other fail", async () => {
    const stores = await Promise.all(Array.from({ length: 4 }, () => stage.another()));
    const results = await Promise.all(
      stores.map((store) => store.history.rotate(stage.nowMs + 50 * dayMs, 49 * dayMs, 0)),
    );
    const dropped = results.flatMap((result) => result.dropped);
    expect(new Set(dropped).size, "dropped once each").toBe(dropped.length);
    expect(dropped.length).toBeGreaterThan(0);
    await stage.store.history.rotate(stage.nowMs, 90 * dayMs);
  });

  it("a long reader delays the drop, but no writer; an interrupted drop is finished by the next one", async () => {
    const reader = await stage.sql.connect();
    const tidy = await stage.another();
    const laterMs = stage.nowMs + 30 * dayMs;
    try {
      await reader.query("begin");
      await reader.query(`select count(*) from ${stage.schema}.run_history`);
      let ended = false;
      const rotating = tidy.history.rotate(laterMs, 29 * dayMs, 0).then(
        () => "done",
        (error) => String(error.message),
      );
      void rotating.then(() => {
        ended = true;
      });
      const waiting = async () =>
        (
          await stage.rows<{ pid: number }>(
            "select pid from pg_stat_activity where query like '%' || $1 || '%detach%' and pid <> pg_backend_pid() and wait_event_type = 'Lock'",
            [stage.schema],
          )
        )[0]?.pid;
      await until("the drop waits", async () => (await waiting()) !== undefined);
      // The drop must not make a writer wait, because the writer would then wait for the reader too.
      await endedRun(laterMs);
      expect(ended).toBe(false);
      await stage.rows("select pg_terminate_backend($1)", [await waiting()]);
      expect(await rotating).not.toBe("done");
      await reader.query("commit");
    } finally {
      reader.release();
    }
    const pending = () =>
      stage.one(
        "select count(*) as n from pg_inherits i join pg_class p on p.oid = i.inhparent where p.relnamespace = to_regnamespace($1) and i.inhdetachpending",
        [stage.schema],
      );
    expect(await pending()).toEqual({ n: 1 });
    const { dropped } = await stage.store.history.rotate(laterMs, 29 * dayMs, 0);
    expect(dropped.length).toBeGreaterThan(5);
    expect(await pending()).toEqual({ n: 0 });
    await stage.store.history.rotate(stage.nowMs, 90 * dayMs);
  });

  it("an endless reader postpones the drop, and all other clean-up is done", async ({ onTestFinished }) => {
    const { log, lines } = recordingLog();
    const surroundings = { clock: systemClock, random: systemRandom, log };
    const database = new Database({ url: server.url, schema: stage.schema, connectionsMax: 1, ...surroundings });
    onTestFinished(() => database.close());
    const history = historyStore(database, 1_000);
    const reader = await stage.sql.connect();
    const laterMs = stage.nowMs + 30 * dayMs;
    const read = /^(attempt|dead_letter)_/;
    const left = async () => (await stage.one("select count(*) as n from $s.run_origin where run_id = -1")).n;
    try {
      await stage.rows("insert into $s.run_origin (run_id, context, created_ms) values (-1, '', 0)");
      await reader.query("begin");
      for (const table of ["attempt", "dead_letter"])
        await reader.query(`select count(*) from ${stage.schema}.${table}`);
      const { dropped } = await history.rotate(laterMs, 29 * dayMs, 0);
      expect(dropped.length, "of the other tables").toBeGreaterThan(10);
      expect(dropped.filter((name) => read.test(name))).toEqual([]);
      const kept = (table: string) => ({
        level: "warn",
        fields: {
          partition: expect.stringMatching(`^${table}_`),
          error: expect.stringContaining("canceling statement"),
        },
        message: expect.stringContaining("kept for now"),
      });
      expect(lines.splice(0), "detaching waits").toEqual([kept("attempt"), kept("dead_letter")]);
      expect((await history.rotate(laterMs, 29 * dayMs, 0)).dropped).toEqual([]);
      expect(lines.splice(0), "finishing a detachment waits").toEqual([kept("attempt"), kept("dead_letter")]);
      expect(await left(), "what comes after the drop").toBe(0);
      await reader.query("commit");
    } finally {
      reader.release();
    }
    const late: string[] = [];
    // The rotation is repeated, because the server may not have noticed yet that the connection of the last attempt has ended.
    await until("those that were kept to be dropped", async () => {
      late.push(...(await historyStore(database).rotate(laterMs, 29 * dayMs, 0)).dropped);
      return late.length >= 4;
    });
    expect(late.filter((name) => !read.test(name))).toEqual([]);
    expect(lines).toEqual([]);
    await stage.store.history.rotate(stage.nowMs, 90 * dayMs);
  });

  it("a detached partition is dropped by the next clean-up, and tables of other owners are left", async ({
    onTestFinished,
  }) => {
    const { log, lines } = recordingLog();
    const tidy = await stage.another({ log });
    const agoMs = stage.nowMs - 400 * dayMs;
    await tidy.history.rotate(agoMs, null, 0);
    const detach = (table: string, ms: number) =>
      stage.rows(`alter table $s.${table} detach partition $s.${dayName(table, ms)}`);
    const soon = stage.nowMs + 6 * dayMs;
    const others = [`notes_${dayName("", agoMs).slice(1)}`, `${dayName("attempt", agoMs)}_copy`];
    const tables = [...others, dayName("attempt", soon)];
    for (const name of others) await stage.rows(`create table $s.${name} (id int)`);
    await detach("attempt", soon);
    for (const table of ["run_log", "attempt"]) await detach(table, agoMs);
    const [read, left] = [dayName("attempt", agoMs), dayName("run_log", agoMs)];
    await stage.rows(`create view $s.reads as select from $s.${read}`);
    onTestFinished(async () => {
      await stage.rows(`drop table if exists ${tables.map((name) => `$s.${name}`).join()} cascade`);
      await stage.store.history.rotate(stage.nowMs, 90 * dayMs);
    });
    const there = async () =>
      stage.rows(
        "select relname as name from pg_class where oid = any(array(select to_regclass(n) from unnest($1::text[]) n))",
        [[...tables, read, left].map((name) => `${stage.schema}.${name}`)],
      );
    const { dropped } = await tidy.history.rotate(stage.nowMs, 30 * dayMs);
    expect(dropped).toContain(left);
    expect(dropped, "what comes after it goes").toContain(dayName("slot", agoMs));
    expect(dropped).not.toContain(read);
    expect((await there()).map(({ name }) => name).sort()).toEqual([...tables, read].sort());
    expect(lines.filter(({ level }) => level === "warn")).toMatchObject([
      { fields: { partition: read }, message: expect.stringContaining("depends on it") },
    ]);
    await stage.rows("drop view $s.reads");
    expect((await tidy.history.rotate(stage.nowMs, 30 * dayMs)).dropped).toEqual([read]);
  });

  it("lists slots and ranges of a task, newest first, within bounds", async () => {
    const task = await stage.task("told", { schedule: every("1s") });
    await stage.plan([task], session, stage.nowMs + 5_000);
    const first = task.nextSlotMs as number;
    const { slots } = await stage.store.history.slots(task.taskId, first + 1_000, first + 3_000, 2);
    expect(slots.map(({ slotMs }) => slotMs)).toEqual([first + 3_000, first + 2_000]);
    expect(slots[0]).toMatchObject({
      outcome: "run",
      reason: null,
      acceptedMs: stage.nowMs,
      runId: expect.any(Number),
    });
  });
});
