import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Pulse } from "../../src/cluster/session-store.ts";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import { every } from "../../src/schedule/schedule.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { inspectPostgres } from "../../src/store/postgres/runs/inspect.ts";
import { slotOutcome } from "../../src/store/postgres/states.ts";
import type { Store } from "../../src/store/store.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, recordingLog, type Stage, settlement, succeededVerdict, until } from "../support/store-stage.ts";

/**
 * Two processes use one store. A test makes the store go back in time: it deletes rows, and records a timeline of the write-ahead log that
 * differs from the server's, as after the promotion of a standby.
 */
describe.each(everyPostgres())("recovery of a store that was reset, $title", (server) => {
  const { log, lines } = recordingLog();
  let stage: Stage;
  let one: Store;
  let two: Store;
  let task: TaskRecord;
  beforeEach(async () => {
    lines.length = 0;
    stage = await openStage(server);
    [one, two] = [await stage.another({ log, standby: true }), await stage.another({ log, standby: true })];
    task = await stage.task("t");
  });
  afterEach(() => stage.close());

  const promoted = () => stage.rows("update $s.cluster set timeline = 'of the former primary'");
  /** Changes rows outside of the cluster, so that no process takes the change for its own. @returns the number of rows */
  const takenOut = (text: string, values: unknown[] = []) =>
    stage.sql.connect().then(async (client) => {
      await client.query("begin; set local carillon.recovery = on");
      const { rowCount } = await client.query(text.replaceAll("$s", stage.schema), values);
      await client.query("commit");
      client.release();
      return rowCount;
    });
  const recoveries = () =>
    stage.rows<Record<string, unknown>>(
      "select number, ended_ms is not null as over, runs, verdicts, missing from $s.recovery order by number",
    );
  const claimedBy = async (store: Store, sessionId: number): Promise<ClaimedRun[]> => {
    const request = { sessionId, groupIds: [task.groupId], exceptTaskIds: [], untilMs: stage.nowMs + 5_000, limit: 10 };
    return (await store.claims.claim({ ...request, nowMs: stage.nowMs })).runs;
  };
  const enqueue = async (store: Store, write = {}) =>
    ((await store.runs.enqueue([stage.write(task, write)], stage.nowMs))[0] as { runId: number }).runId;

  it("changes nothing if nothing was lost", async () => {
    const session = await stage.session("node", one);
    const before = await enqueue(two);
    await promoted();
    const [after, pulse] = await Promise.all([enqueue(two), one.sessions.beat(session, stage.nowMs)]);
    expect(pulse.alive).toBe(true);
    expect(after, "drawn before").toBe(before + 1);
    const { next } = await stage.one<{ next: number }>("select nextval('$s.run_id') as next");
    expect(next - after, "numbers jump").toBeGreaterThan(1_000_000);
    await expect.poll(recoveries).toEqual([{ number: 1, over: true, runs: 0, verdicts: 0, missing: [] }]);
    expect(lines.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("answers the wait for a run's result only once the run is back, and not that there is no such run", async () => {
    const session = await stage.session("node", one);
    const runId = await enqueue(one);
    expect(await takenOut("delete from $s.run where id = $1", [runId])).toBe(1);
    await promoted();
    const ends = two.runs.ends([runId], stage.nowMs);
    await one.sessions.beat(session, stage.nowMs);
    expect(await ends, "it has not ended").toEqual([]);
    expect(await stage.rows("select run_id from $s.awaited"), "its end will be signalled").toEqual([{ run_id: runId }]);
  });

  it("raises an alarm for a day, once per recovery, and doctor shows its outcome", async () => {
    const session = await stage.session("node", one);
    await takenOut("update $s.session set seen_ms = seen_ms - 4200 where id = $1", [session]);
    const thresholds = { lateMs: 1, overdueMs: 1, unfiredMs: 1, stuckMs: 1, leaderlessMs: 1, summaryMs: 60_000 };
    const look = async (nowMs: number) => {
      await stage.store.alarms.look(["recovery"], thresholds, { recovery: ["ops"] }, nowMs);
      return (await stage.store.alarms.outbox(10)).map(({ kind }) => kind).reverse();
    };
    const facts = async () => (await inspectPostgres(server.direct, stage.schema)).cluster;
    expect(await look(stage.nowMs)).toEqual([]);
    expect((await facts())?.recovery).toBeUndefined();
    const recovered = async (number: number) => {
      await promoted();
      await one.sessions.beat(session, stage.nowMs);
      await expect.poll(recoveries).toContainEqual(expect.objectContaining({ number, over: true }));
      return (await stage.one<{ ended: number }>("select max(ended_ms) as ended from $s.recovery")).ended;
    };
    const first = await recovered(1);
    await stage.rows("update $s.recovery set missing = '{gone}', runs = 731 where number = 1");
    expect(await look(first + 4_999), "results may follow").toEqual([]);
    expect(await look(first + 5_000)).toEqual(["raised"]);
    expect(await stage.store.alarms.open(first + 5_000)).toMatchObject([
      {
        rule: "recovery",
        subject: "",
        count: 1,
        text: expect.stringMatching(
          /it went back 4\.2 s; 731 runs and 0 results .* not known, .*: gone; 0 runs at most may have run twice$/,
        ),
      },
    ]);
    expect((await facts())?.recovery).toMatchObject({
      endedMs: first,
      backMs: 4_200,
      runs: 731,
      verdicts: 0,
      missing: ["gone"],
    });
    // The alarm is raised once per recovery, and a second recovery is added in a summary.
    expect(await look(first + 5_001)).toEqual(["raised"]);
    const second = await recovered(2);
    expect(await look(second + 70_000)).toEqual(["raised", "summary"]);
    expect(await stage.store.alarms.open(second + 70_000)).toMatchObject([{ count: 2 }]);

    // A recovery that takes long is reported while it is under way.
    await stage.rows("update $s.cluster set recovery = 3, recovering_since_ms = $1", [second + 100_000]);
    await stage.rows("insert into $s.recovery (number, began_ms) values (3, $1)", [second + 100_000]);
    await look(second + 111_000);
    expect((await stage.store.alarms.open(second + 111_000))[0]?.text).toContain("a recovery is under way");
    await stage.rows("update $s.recovery set ended_ms = $1 where number = 3", [second + 112_000]);
    await stage.rows("update $s.cluster set recovering_since_ms = null");
    await look(second + 117_000);
    expect(await stage.store.alarms.open(second + 117_000)).toMatchObject([{ count: 3 }]);

    const over = second + 117_001 + 86_400_000;
    await look(over - 2);
    expect(await stage.store.alarms.open(over)).toHaveLength(1);
    await look(over);
    expect(await stage.store.alarms.open(over)).toEqual([]);
    expect((await look(over + 60_000)).at(-1)).toBe("cleared");
  });

  it("refuses deciding writes from any process, and an enqueue in the caller's transaction with STORE_RECOVERING", async () => {
    await stage.session("node", one);
    await promoted();
    await expect(stage.rows("update $s.run set priority = 1")).rejects.toMatchObject({ code: "CA001" });
    const client = await stage.sql.connect();
    await client.query("begin");
    await expect(two.runs.enqueueIn(client, stage.write(task), stage.nowMs)).rejects.toMatchObject({
      code: "STORE_RECOVERING",
    });
    await client.query("rollback");
    client.release();
  });

  it("restores an enqueue, a claim and a verdict, each as it was acknowledged", async () => {
    const session = await stage.session("node", one);
    const [ended, held] = [await enqueue(two), await enqueue(two)];
    await stage.rows("update $s.run set losses = 2 where id = $1", [held]);
    const runs = await claimedBy(one, session);
    expect(runs.map(({ runId }) => runId)).toEqual([ended, held]);
    await one.claims.settle(session, [settlement(runs[0] as ClaimedRun, succeededVerdict, stage.nowMs)], stage.nowMs);
    const waiting = await enqueue(two, { dueMs: stage.nowMs + 60_000, payload: '{"kept":true}', priority: 7 });
    expect(await takenOut("delete from $s.run")).toBe(2);
    await takenOut("delete from $s.run_history");
    await takenOut("delete from $s.session");
    await promoted();

    await Promise.all([one.sessions.beat(session, stage.nowMs), enqueue(two)]);
    const state = async (id: number) =>
      one.runs.find(id).then(({ state, fence, payload, priority }) => ({ state, fence, payload, priority }));
    await expect.poll(() => state(ended)).toMatchObject({ state: "succeeded", fence: runs[0]?.fence });
    expect(await state(held)).toMatchObject({ state: "claimed", fence: runs[1]?.fence });
    expect(await stage.rows("select losses from $s.run where id = $1", [held])).toEqual([{ losses: 2 }]);
    expect(await state(waiting)).toMatchObject({ state: "ready", payload: { kept: true }, priority: 7 });
    expect((await one.sessions.beat(session, stage.nowMs)).alive).toBe(true);
    await expect.poll(recoveries).toMatchObject([{ over: true, verdicts: 1, missing: [] }]);
    expect((await recoveries())[0]?.runs).toBeGreaterThanOrEqual(3);
    const refused = await one.claims.settle(
      session,
      [settlement(runs[1] as ClaimedRun, succeededVerdict, stage.nowMs)],
      stage.nowMs,
    );
    expect([...refused]).toEqual([]);
  });

  it("does not replan a slot that a process saw start", async () => {
    const session = await stage.session("node", one);
    task = await stage.task("slots", { schedule: every(1_000), misfire: "all" });
    await stage.plan([task], session, stage.nowMs + 1_500);
    const [run] = await claimedBy(one, session);
    expect(run).toMatchObject({ slotMs: expect.any(Number) });
    await takenOut("delete from $s.run");
    await takenOut("delete from $s.slot");
    await takenOut("update $s.plan set next_slot_ms = $1 where task_id = $2", [run?.slotMs, task.taskId]);
    await promoted();
    await one.sessions.beat(session, stage.nowMs);
    const record = (await stage.store.tasks.byIds([task.taskId]))[0] as TaskRecord;
    await stage.plan([record], session, (run?.slotMs as number) + 500);
    const rows = await stage.rows("select id, slot_ms from $s.run where slot_ms = $1", [run?.slotMs]);
    expect(rows).toEqual([{ id: run?.runId, slot_ms: run?.slotMs }]);
  });

  it("waits for a missing process as long as its session lasts, and names it if it does not return", async () => {
    const session = await stage.session("node", one);
    await takenOut("delete from $s.session");
    const gone = { node: "gone", role: "node", host: "h", pid: 1, version: "0", timeoutMs: 600_000 } as const;
    await (await stage.another()).sessions.open(gone, stage.nowMs);
    await promoted();
    let enqueued = false;
    const enqueueing = enqueue(two).then(() => {
      enqueued = true;
    });
    /** Moves the beginning of the recovery `ms` into the past, so that the recovery seems to have lasted longer. */
    const passes = (ms: number) =>
      takenOut("update $s.cluster set recovering_since_ms = recovering_since_ms - $1", [ms]);
    // The first process sends heartbeats meanwhile, but the other one is still missing.
    for (const ms of [0, gone.timeoutMs / 2]) {
      await passes(ms);
      expect((await one.sessions.beat(session, stage.nowMs)).alive).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, 600)); // Waiting processes read the recovery's state every 250 ms.
      expect(await recoveries()).toMatchObject([{ over: false }]);
      expect(enqueued).toBe(false);
    }
    await passes(gone.timeoutMs / 2);
    await enqueueing;
    await expect.poll(recoveries).toMatchObject([{ over: true, missing: ["gone"] }]);
    const [entry] = await two.audit.list({} as never, 1e9, 5);
    expect(entry).toMatchObject({ act: "recover", about: "cluster", after: { missing: ["gone"] } });
  });

  it("counts the runs that a missing process may have started", async () => {
    const session = await stage.session("node", one);
    await (await stage.another()).sessions.open(
      { node: "gone", role: "node", host: "h", pid: 1, version: "0", timeoutMs: 500 },
      stage.nowMs,
    );
    await enqueue(two, { dueMs: stage.nowMs - 1_000 });
    expect(await claimedBy(one, session), "one that somebody remembers").toHaveLength(1);
    for (const dueMs of [-1_000, -2_000, -60_000, 60_000]) await enqueue(two, { dueMs: stage.nowMs + dueMs });
    await takenOut("update $s.session set seen_ms = seen_ms - 4200 where id = $1", [session]);
    await promoted();
    await one.sessions.beat(session, stage.nowMs);
    await expect.poll(recoveries).toMatchObject([{ over: true, missing: ["gone"] }]);
    const inDoubt = async () => (await inspectPostgres(server.direct, stage.schema)).cluster?.recovery?.inDoubt;
    expect(await inDoubt()).toBe(2);
    const accepted = (slotMs: number, outcome: number) =>
      takenOut(
        "insert into $s.slot (task_id, slot_ms, outcome, accepted_ms) select $1, $2, $3, ended_ms from $s.recovery",
        [task.taskId, slotMs, outcome],
      );
    await accepted(stage.nowMs - 3_000, slotOutcome.run as number);
    await accepted(stage.nowMs - 3_001, slotOutcome.skipped as number);
    await accepted(stage.nowMs - 5_000, slotOutcome.run as number);
    expect(await inDoubt(), "and what was planned after it").toBe(3);
    await stage.rows("update $s.recovery set missing = '{}'");
    expect(await inDoubt(), "all came").toBe(0);
  });

  it("also restores the writes of a process that notices it later", async () => {
    const session = await stage.session("node", one);
    const lost = await enqueue(two, { dueMs: stage.nowMs + 60_000 });
    await takenOut("delete from $s.run");
    await promoted();
    await one.sessions.beat(session, stage.nowMs);
    await expect.poll(recoveries).toMatchObject([{ over: true, runs: 0 }]);
    const { before } = await stage.one<{ before: number }>("select nextval('$s.fence') as before");
    const ahead = () => stage.rows("select last_value, log_cnt from $s.fence");
    const drawnAhead = await ahead();
    // The process notices the recovery when it has to draw a new block of ids; until then it uses ids that it has drawn already.
    for (let n = 0; n < 2; n++) await two.runs.enqueue(Array(100).fill(stage.write(task)), stage.nowMs);
    await expect.poll(() => stage.rows("select id from $s.run where id = $1", [lost])).toHaveLength(1);
    expect(drawnAhead).toMatchObject([{ last_value: before }]);
    expect(await ahead(), "others draw meanwhile: the sequence was not set").toEqual(drawnAhead);
  });

  it("restores as unfinished a run whose completion was lost together with its handler's writes", async () => {
    const session = await stage.session("node", one);
    await enqueue(two);
    const [run] = (await claimedBy(one, session)) as [ClaimedRun];
    const client = await stage.sql.connect();
    await client.query("begin");
    expect(
      await one.claims.settleIn(client, session, settlement(run, succeededVerdict, stage.nowMs), stage.nowMs),
    ).toBe(true);
    await client.query("commit");
    client.release();
    await one.claims.settle(session, [settlement(run, succeededVerdict, stage.nowMs)], stage.nowMs);
    await takenOut("delete from $s.run_history");
    await promoted();
    await one.sessions.beat(session, stage.nowMs);
    await expect.poll(async () => (await one.runs.find(run.runId)).state).toBe("ready");
  });

  it("restores a verdict whose first answer was lost, and does not rerun it", async () => {
    const session = await stage.session("node", one);
    await enqueue(two);
    const [run] = (await claimedBy(one, session)) as [ClaimedRun];
    const verdict = settlement(run, succeededVerdict, stage.nowMs);
    // The verdict is applied through another connection first, as if the reply to this process's first attempt had been lost.
    await (await stage.another()).claims.settle(session, [verdict], stage.nowMs);
    expect([...(await one.claims.settle(session, [verdict], stage.nowMs))]).toEqual([]);
    await takenOut("delete from $s.run_history");
    await promoted();
    await one.sessions.beat(session, stage.nowMs);
    await expect.poll(async () => (await one.runs.find(run.runId)).state).toBe("succeeded");
  });

  /** Lets the store lose a verdict, and calls `meanwhile` while the verdict is being written again. @returns the verdict's run */
  async function whileWritten(
    session: number,
    meanwhile: (beat: Promise<Pulse>, commit: () => Promise<void>) => Promise<void>,
  ) {
    await enqueue(two);
    const [run] = (await claimedBy(one, session)) as [ClaimedRun];
    await one.claims.settle(session, [settlement(run, succeededVerdict, stage.nowMs)], stage.nowMs);
    await takenOut("delete from $s.run_history");
    const holder = await stage.sql.connect();
    try {
      await holder.query(`begin; lock table ${stage.schema}.run_history in share mode`);
      await promoted();
      const beat = one.sessions.beat(session, stage.nowMs);
      const waiting = "select from pg_locks where not granted and relation = '$s.run_history'::regclass";
      await until("the verdict is being written", async () => (await stage.rows(waiting)).length > 0);
      await meanwhile(beat, async () => void (await holder.query("commit")));
    } finally {
      holder.release();
    }
    return run;
  }

  it("ends a session only after the verdicts that the store had lost are written", async () => {
    const session = await stage.session("node", one);
    let ended = Promise.resolve(false);
    const run = await whileWritten(session, async (beat, commit) => {
      await beat;
      ended = one.sessions.end(session, null, stage.nowMs, "stopped");
      for (let i = 0; i < 5; i++) await one.clock();
      expect(await stage.rows("select ended_ms from $s.session where id = $1", [session])).toEqual([
        { ended_ms: null },
      ]);
      await commit();
    });
    expect(await ended).toBe(true);
    expect(await one.runs.find(run.runId)).toMatchObject({ state: "succeeded" });
  });

  it("restores a verdict if the store is reset again while the verdict is being written", async () => {
    const session = await stage.session("node", one);
    const run = await whileWritten(session, async (beat, commit) => {
      await promoted();
      await commit();
      expect((await beat).alive).toBe(true);
    });
    await expect.poll(async () => (await one.runs.find(run.runId)).state).toBe("succeeded");
    await expect.poll(recoveries).toMatchObject([{ over: true, verdicts: 1 }, { over: true }]);
    expect((await one.sessions.beat(session, stage.nowMs)).alive).toBe(true);
  });

  it("restores a claim found in the claim sync after its answer was lost, and its verdict", async () => {
    const session = await stage.session("node", one);
    const runId = await enqueue(two);
    expect(await claimedBy(await stage.another(), session)).toHaveLength(1);
    const [run] = (await one.claims.heldBy(session)) as [ClaimedRun];
    await one.claims.settle(session, [settlement(run, succeededVerdict, stage.nowMs)], stage.nowMs);
    await takenOut("delete from $s.run_history");
    await promoted();
    await one.sessions.beat(session, stage.nowMs);
    await expect.poll(recoveries).toMatchObject([{ over: true, runs: 1, verdicts: 1 }]);
    expect(await one.runs.find(runId)).toMatchObject({ state: "succeeded", fence: run.fence });
  });

  describe("whose server does not report its log's timeline", () => {
    beforeEach(async () => {
      await stage.rows(
        `create or replace function $s.log_timeline() returns text language sql volatile as 'select null::text'`,
      );
      await stage.rows("update $s.cluster set timeline = null");
    });

    it("is detected by a session whose heartbeat was further ahead", async () => {
      const session = await stage.session("node", one);
      for (let beat = 0; beat < 3; beat++) await one.sessions.beat(session, stage.nowMs);
      await takenOut("update $s.session set beat = 0");
      expect((await one.sessions.beat(session, stage.nowMs)).alive).toBe(true);
      await expect.poll(recoveries).toMatchObject([{ over: true }]);
    });

    it("is detected by a missing session", async () => {
      const session = await stage.session("node", one);
      await takenOut("delete from $s.session");
      expect((await one.sessions.beat(session, stage.nowMs)).alive).toBe(true);
      await expect.poll(recoveries).toMatchObject([{ over: true }]);
    });

    it("is detected by fences that were issued before, and starts nothing under them", async () => {
      const session = await stage.session("node", one);
      await enqueue(two);
      await enqueue(two);
      const [first] = (await claimedBy(one, session)) as [ClaimedRun];
      await enqueue(two);
      await stage.rows("select setval('$s.fence', 1)");
      expect(await claimedBy(one, session)).toEqual([]);
      const [again] = (await claimedBy(one, session)) as [ClaimedRun];
      expect(again.fence).toBeGreaterThan(first.fence + 1_000_000);
      expect(again.attempt).toBe(1);
    });

    it("is detected by run numbers that were issued before", async () => {
      const numbers: number[] = [];
      numbers.push(await enqueue(two));
      await stage.rows("select setval('$s.run_id', 1)");
      for (let n = 0; n < 200; n++) numbers.push(await enqueue(two));
      expect(new Set(numbers).size).toBe(201);
      expect(Math.max(...numbers)).toBeGreaterThan(1_000_000);
    });
  });
});

describe.each(everyPostgres())("a database service that does not report its log's timeline, $title", (server) => {
  it("is identified by its server's start time", async () => {
    const name = `untold_${process.pid}_${Date.now()}`;
    const admin = new pg.Client({ connectionString: server.direct });
    await admin.connect();
    await admin.query(`create role ${name} login password 'untold'`);
    await admin.query(`create database ${name} owner ${name}`);
    const url = Object.assign(new URL(server.direct), { pathname: `/${name}` });
    const inside = new pg.Client({ connectionString: String(url) });
    await inside.connect();
    await inside.query("revoke execute on function pg_walfile_name(pg_lsn) from public");
    Object.assign(url, { username: name, password: "untold" });
    const { log, lines } = recordingLog();
    const store = await openPostgres({ url: String(url), standby: true, log });
    try {
      const timeline = async () => (await inside.query("select timeline from carillon.cluster")).rows[0].timeline;
      const own = await timeline();
      expect(own).toMatch(/^start \d{20}$/);
      // Records the start of a server that started later. The text does not show which of the two states is the newer one.
      await inside.query("update carillon.cluster set timeline = 'start 99990101000000000000'");
      const identity = { node: "one", role: "node", host: "h", pid: 1, version: "0", timeoutMs: 5_000 } as const;
      expect(await store.sessions.open(identity, Date.now())).toMatchObject({ sessionId: expect.any(Number) });
      expect(await timeline()).toBe(own);
      expect(lines.map(({ message }) => message)).toContainEqual(expect.stringMatching(/the store is whole again/));
    } finally {
      await store.close();
      await inside.end();
      await admin.query(`drop database ${name}`);
      await admin.query(`drop role ${name}`);
      await admin.end();
    }
  });
});
