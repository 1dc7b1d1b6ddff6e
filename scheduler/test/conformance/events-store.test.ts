import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import {
  cursorOf,
  type EventPlace,
  type EventType,
  runEventTypes as eventTypes,
  placeOfCursor,
  type StoredEvent,
} from "../../src/store/event-store.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { dayMs, openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

const failedVerdict: Verdict = { kind: "ended", outcome: "failed", result: null, error: '{"message":"no"}' };

describe.each(everyPostgres())("events of runs in the store, $title", (server) => {
  let stage: Stage;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterAll(() => stage.close());

  let groups = 0;
  const alone = (name: string, options = {}) => stage.task(name, { group: `g${++groups}`, ...options });
  async function claimed(task: TaskRecord, count = 1): Promise<ClaimedRun[]> {
    await stage.store.runs.enqueue(
      Array.from({ length: count }, () => stage.write(task)),
      stage.nowMs,
    );
    return stage.claim(session, [task]);
  }
  const settle = (run: ClaimedRun, verdict: Verdict, endedMs = stage.nowMs) =>
    stage.store.claims.settle(session, [settlement(run, verdict, endedMs)], stage.nowMs);
  async function ended(task: TaskRecord, verdict = succeededVerdict): Promise<number> {
    const [run] = (await claimed(task)) as [ClaimedRun];
    await settle(run, verdict);
    return run.runId;
  }
  const want = async (types: readonly EventType[], after: EventPlace | null = null) =>
    stage.store.events.want(types, stage.nowMs + 1_000, after, stage.nowMs);
  const read = (after: EventPlace, tasks: string[] | null = null, limit = 100) =>
    stage.store.events.read(after, { types: eventTypes, tasks }, limit, stage.nowMs);
  const recorded = async () => (await stage.one("select count(*)::int as n from $s.event")).n;
  const drop = () => stage.rows("delete from $s.event_kind");
  const numbersOf = (events: StoredEvent[]) => events.map(({ runId }) => runId);

  it("are recorded only for requested types", async () => {
    const task = await alone("unwanted");
    await drop();
    await ended(task);
    await ended(task, failedVerdict);
    expect(await recorded()).toBe(0);
    const { place } = await want(["run.failed"]);
    await ended(task);
    const failed = await ended(task, failedVerdict);
    expect(await recorded()).toBe(1);
    expect((await read(place)).events).toMatchObject([
      { type: "run.failed", runId: failed, task: "unwanted", attempt: 1, atMs: stage.nowMs, error: { message: "no" } },
    ]);
  });

  it("cover every end and every retry, in commit order, and can be limited to tasks", async () => {
    const { place } = await want(eventTypes);
    const [one, other] = [await alone("ends"), await alone("other")];
    const [first] = (await claimed(one)) as [ClaimedRun];
    const again: Verdict = { kind: "retry", dueMs: stage.nowMs, error: '{"message":"again"}' };
    await settle(first, again);
    const [second] = (await stage.claim(session, [one])) as [ClaimedRun];
    await settle(second, { ...succeededVerdict, result: '{"sum":7}' } as Verdict);
    const failed = await ended(other, failedVerdict);
    const waiting = await stage.enqueue(one, { key: "k" });
    await stage.store.runs.cancel(waiting, "enough", stage.nowMs);
    const page = await read(place);
    expect(page.whole).toBe(true);
    expect(page.events.map(({ type, runId, attempt }) => [type, runId, attempt])).toEqual([
      ["run.retried", first.runId, 1],
      ["run.succeeded", first.runId, 2],
      ["run.failed", failed, 1],
      ["run.cancelled", waiting, 0],
    ]);
    expect(page.events).toMatchObject([
      { error: { message: "again" }, result: null },
      { result: { sum: 7 }, error: null },
      { task: "other" },
      { key: "k", error: { code: "CANCELLED" } },
    ]);
    expect(numbersOf((await read(place, ["other"])).events)).toEqual([failed]);
    expect((await read(page.place)).events).toEqual([]);
  });

  it("of a success without a row have no result", async () => {
    const task = await alone("unkept", { history: "failures" });
    const { place } = await want(["run.succeeded"]);
    const [run] = (await claimed(task)) as [ClaimedRun];
    await stage.store.claims.settle(
      session,
      [{ ...settlement(run, succeededVerdict, stage.nowMs), unkept: true }],
      stage.nowMs,
    );
    expect((await read(place)).events).toMatchObject([
      { type: "run.succeeded", runId: run.runId, attempt: 1, task: "unkept", result: null, key: null },
    ]);
  });

  it("have the run's labels, although it ended after the retry, or left no row", async () => {
    const options: TaskOptions = { group: "labelled", history: "failures", retry: { attempts: 2 } };
    const task = await stage.task("labelled", options);
    const { place } = await want(["run.retried", "run.succeeded"]);
    const claim = async () => (await stage.claim(session, [task]))[0] as ClaimedRun;
    const labels = { owner: "bob" };
    await stage.enqueue(task, { labels });
    const again: Verdict = { kind: "retry", dueMs: stage.nowMs, error: '{"message":"no"}' };
    await settle(await claim(), again);
    const succeed = async () => {
      const ends = [{ ...settlement(await claim(), succeededVerdict, stage.nowMs), unkept: true }];
      await stage.store.claims.settle(session, ends, stage.nowMs);
    };
    await succeed();
    await stage.enqueue(task);
    // Run labels that the task gets now do not apply to the run that was enqueued before.
    await stage.task("labelled", { ...options, runLabels: { owner: "ann" } });
    await succeed();
    const events = (await read(place)).events.filter((event) => event.task === "labelled");
    expect(events.map((event) => [event.type, event.labels])).toEqual([
      ["run.retried", labels],
      ["run.succeeded", labels],
      ["run.succeeded", null],
    ]);
  });

  it("of a transaction that commits late are read after its commit, once, and delay no other events", async () => {
    const task = await alone("overlap");
    const { place } = await want(["run.succeeded"]);
    const [slow, quick, last] = (await claimed(task, 3)) as [ClaimedRun, ClaimedRun, ClaimedRun];
    const client = await stage.sql.connect();
    try {
      await client.query("begin");
      // This run's event gets a lower number, an older time and an older transaction than the next run's event, but commits after it.
      await stage.store.claims.settleIn(
        client,
        session,
        settlement(slow, succeededVerdict, stage.nowMs - 60_000),
        stage.nowMs,
      );
      await settle(quick, succeededVerdict);
      const first = await read(place);
      expect(numbersOf(first.events)).toEqual([quick.runId]);
      expect(first.whole).toBe(true);
      await settle(last, succeededVerdict);
      const second = await read(first.place);
      expect(numbersOf(second.events)).toEqual([last.runId]);
      await client.query("commit");
      const third = await read(second.place);
      expect(numbersOf(third.events)).toEqual([slow.runId]);
      expect(numbersOf((await read(third.place)).events)).toEqual([]);
      // Reading on from any event, one page at a time, returns every later event, even the one that committed last.
      const [behindQuick] = first.events as [StoredEvent];
      expect(numbersOf((await read(behindQuick.place)).events).toSorted()).toEqual([]);
      expect(numbersOf((await read((await read(behindQuick.place)).place)).events).toSorted()).toEqual(
        [slow.runId, last.runId].toSorted(),
      );
    } finally {
      client.release();
    }
  });

  it("are read in pages, each of which starts after the last event of the previous one", async () => {
    const task = await alone("paged");
    const { place } = await want(["run.succeeded"]);
    const runs = await claimed(task, 5);
    for (const run of runs) await settle(run, succeededVerdict);
    const seen: number[] = [];
    let at = place;
    for (let whole = false; !whole; ) {
      const page = await read(placeOfCursor(cursorOf(at)), null, 2);
      seen.push(...numbersOf(page.events));
      ({ place: at, whole } = page);
    }
    expect(seen).toEqual(runs.map(({ runId }) => runId));
  });

  it("a rolled-back end records no event", async () => {
    const task = await alone("undone");
    const { place } = await want(["run.succeeded"]);
    const [run] = (await claimed(task)) as [ClaimedRun];
    const client = await stage.sql.connect();
    await client.query("begin");
    await stage.store.claims.settleIn(client, session, settlement(run, succeededVerdict, stage.nowMs), stage.nowMs);
    await client.query("rollback");
    client.release();
    expect((await read(place)).events).toEqual([]);
  });

  it("a position from before recording began, or before the retention, is reported as incomplete", async () => {
    await drop();
    const { place } = await want(["run.failed"]);
    expect((await want(["run.failed"], place)).whole).toBe(true);
    expect((await want(["run.failed", "run.succeeded"], place)).whole).toBe(false);
    // No process has renewed its request for these kinds of events in time, so the store stops recording them.
    await stage.store.history.rotate(stage.nowMs + 2_000, 30 * dayMs);
    expect((await stage.one("select count(*)::int as n from $s.event_kind")).n).toBe(0);
    expect((await want(["run.failed"], place)).whole).toBe(false);
    const { place: later } = await want(["run.failed"]);
    await stage.store.history.rotate(stage.nowMs + 500, 3_600_000);
    expect((await want(["run.failed"], later)).whole).toBe(true);
    expect((await want(["run.failed"], { ...later, ms: stage.nowMs - 2 * 3_600_000 })).whole).toBe(false);
  });

  it.each([
    ["with a recovery", (place: EventPlace) => ({ ...place, recovery: place.recovery + 1 })],
    ["with its numbers", (place: EventPlace) => ({ ...place, seen: "999999999999:999999999999:" })],
  ])(
    "after the store was reset %s, runs that ended shortly before the position are sent again, in pages",
    async (title, back) => {
      const task = await alone(`back-${title.length}`);
      await want(["run.succeeded"]);
      const [old, recent, newest] = (await claimed(task, 3)) as [ClaimedRun, ClaimedRun, ClaimedRun];
      await settle(old, succeededVerdict, stage.nowMs - 3_600_000);
      await settle(recent, succeededVerdict, stage.nowMs - 60_000);
      const { place } = await want(["run.succeeded"]);
      await settle(newest, succeededVerdict);
      const tasks = [`back-${title.length}`];
      expect(numbersOf((await read(back(place), tasks)).events)).toEqual([recent.runId, newest.runId]);
      const first = await read(back(place), tasks, 1);
      const second = await read(first.place, tasks, 1);
      const third = await read(second.place, tasks, 1);
      expect([first, second, third].map(({ events }) => numbersOf(events))).toEqual([
        [recent.runId],
        [newest.runId],
        [],
      ]);
      expect((await want(["run.succeeded"], first.place)).whole).toBe(true);
    },
  );

  it("of a store moved to a server with lower transaction ids are sent again, rather than never", async () => {
    const task = await alone("moved");
    const { place } = await want(["run.succeeded"]);
    const runId = await ended(task);
    await stage.rows("update $s.event set xid = '999999999999' where run_id = $1", [runId]);
    await stage.rows("update $s.event_kind set since = '999999999999'");
    expect((await read(place)).events).toEqual([]);
    const { takeOverSql } = await import("../../src/store/postgres/events/recording.ts");
    await stage.rows(takeOverSql(stage.schema));
    expect(numbersOf((await read(place)).events)).toEqual([runId]);
    expect((await want(["run.succeeded"], place)).whole).toBe(true);
  });

  describe("a consumer", () => {
    const { nowMs } = { nowMs: 9e12 };
    const events = () => stage.store.events;
    const placed = async () => (await want(["run.succeeded"])).place;

    it("keeps its position, which only its current server process can move", async () => {
      const place = await placed();
      await events().enrol("billing", place, nowMs);
      await events().enrol("billing", { ...place, ms: 1 }, nowMs);
      const first = await events().serve("billing");
      expect(first).toEqual({ epoch: 1, place });
      const moved = { ...place, ms: place.ms + 1 };
      expect(await events().move("billing", 1, moved, nowMs)).toBe(true);
      expect(await events().move("billing", 1, moved, nowMs), "a repetition").toBe(true);
      expect(await events().serve("billing")).toEqual({ epoch: 2, place: moved });
      expect(await events().move("billing", 1, place, nowMs)).toBe(false);
      expect(await events().moveWith("billing", 1, place, nowMs, () => Promise.reject(new Error("called")))).toBe(
        false,
      );
      expect(await events().forget("billing")).toBe(true);
      expect(await events().forget("billing")).toBe(false);
      expect(await events().serve("billing")).toBeNull();
      expect(await events().move("billing", 2, place, nowMs)).toBe(false);
    });

    it("moves its position together with the work, or neither; its next server process waits for the work to end", async () => {
      const place = await placed();
      await stage.rows("create table $s.effects (n int)");
      await events().enrol("ledger", place, nowMs);
      await events().serve("ledger");
      const moved = { ...place, ms: place.ms + 1 };
      const insert = (n: number) => `insert into ${stage.schema}.effects values (${n})`;
      const refused = new Error("the handler's own");
      const failing = events().moveWith("ledger", 1, moved, nowMs, async (client) => {
        await client.query(insert(1));
        throw refused;
      });
      await expect(failing).rejects.toBe(refused);
      const order: string[] = [];
      let next: Promise<unknown> = Promise.resolve();
      const moving = await events().moveWith("ledger", 1, moved, nowMs, async (client) => {
        next = (await stage.another()).events.serve("ledger").then((served) => {
          order.push("served");
          return served;
        });
        await client.query(insert(2));
        order.push("worked");
      });
      expect(moving).toBe(true);
      expect(await next).toEqual({ epoch: 2, place: moved });
      expect(order).toEqual(["worked", "served"]);
      expect(await stage.rows("select n from $s.effects")).toEqual([{ n: 2 }]);
    });

    it("is deleted once no process has served it before its expiry", async () => {
      await events().enrol("left", await placed(), stage.nowMs + 5_000);
      await stage.store.history.rotate(stage.nowMs + 4_000, dayMs);
      expect(await events().serve("left")).not.toBeNull();
      await stage.store.history.rotate(stage.nowMs + 6_000, dayMs);
      expect(await events().serve("left")).toBeNull();
    });
  });
});
