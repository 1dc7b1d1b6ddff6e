import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import type { Enqueued } from "../../src/run/run-record.ts";
import { Enqueuer } from "../../src/store/enqueuer.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement, succeededVerdict, until } from "../support/store-stage.ts";

describe.each(everyPostgres())("runs on $title", (server) => {
  let stage: Stage;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterAll(() => stage.close());
  const live = async (taskId: number) =>
    (await stage.one("select count(*) as n from $s.run where task_id = $1", [taskId])).n;

  describe("enqueue", () => {
    it("returns results in the order of the writes, with the task's priority unless a write has its own", async () => {
      const task = await stage.task("order", { priority: 3 });
      const writes = Array.from({ length: 2_000 }, (_, i) =>
        stage.write(task, { payload: `{"i":${i}}`, priority: i % 2 === 0 ? null : 9 }),
      );
      const answers = await stage.store.runs.enqueue(writes, stage.nowMs);
      expect(answers.every(({ created }) => created)).toBe(true);
      for (const i of [0, 1, 999, 1_999]) {
        expect(await stage.store.runs.find((answers[i] as { runId: number }).runId)).toMatchObject({
          payload: { i },
          priority: i % 2 === 0 ? 3 : 9,
          state: "ready",
          source: "enqueue",
        });
      }
    });

    it("keeps each payload and time as given, whichever statement made the run", async () => {
      const task = await stage.task("kept", { priority: 3 });
      const payloads = [0, -1.5, "", 'quo"te,\\ {}', "\u2028é𝄞", null, true, [[], {}], { a: [null], "": "NULL" }];
      const plain = payloads.map((payload, i) =>
        stage.write(task, { payload: JSON.stringify(payload), dueMs: stage.nowMs + i, source: "manual" }),
      );
      const none = payloads.map((_, i) => stage.write(task, { payload: null, dueMs: stage.nowMs + i }));
      const large = plain.map((write) => ({ ...write, payload: JSON.stringify([write.payload, "x".repeat(600_000)]) }));
      for (const writes of [plain, none, [...plain, ...none], large]) {
        const made = await stage.store.runs.enqueue(writes, stage.nowMs);
        for (const [i, write] of writes.entries())
          expect(await stage.store.runs.find((made[i] as { runId: number }).runId)).toMatchObject({
            payload: write.payload === null ? null : JSON.parse(write.payload),
            dueMs: write.dueMs,
            source: write.source,
            priority: 3,
            state: "ready",
          });
      }
    });

    it("uses a separate query plan for a large batch after many small ones", async () => {
      const task = await stage.task("quick");
      for (const keyed of [false, true]) {
        const writes = (count: number, prefix: string) =>
          Array.from({ length: count }, (_, i) => stage.write(task, keyed ? { key: `${prefix}-${i}` } : {}));
        for (let i = 0; i < 10; i++) await stage.store.runs.enqueue(writes(1, `small-${i}`), stage.nowMs);
        const statements = vi.spyOn(pg.Client.prototype, "query");
        await stage.store.runs.enqueue(writes(10_000, "large"), stage.nowMs);
        const configs = statements.mock.calls.map(([config]) => config as unknown as pg.QueryConfig);
        statements.mockRestore();
        const inserts = configs.filter(({ text }) => text?.includes("insert into"));
        expect(inserts).toHaveLength(1);
        // Runs of one task without keys need no comparison. A cached plan for a named statement would compare each row with all others, so
        // with keys the statement has no name and is planned for its parameters.
        if (keyed) expect(inserts[0]?.name ?? "").toBe("");
      }
      expect(await live(task.taskId)).toBe(2 * 10_010);
    });

    it("makes one run per key while it lives, and another when it has ended", async () => {
      const task = await stage.task("keys", { group: "keys" });
      const write = stage.write(task, { key: "k" });
      const [first, second] = await stage.store.runs.enqueue([write, write], stage.nowMs);
      expect(first).toEqual({ runId: first?.runId, created: true });
      expect(second).toEqual({ runId: first?.runId, created: false });
      const [run] = (await stage.claim(session, [task])) as [ClaimedRun];
      expect(await stage.store.runs.enqueue([write], stage.nowMs), "while it is claimed").toEqual([
        { runId: run.runId, created: false },
      ]);
      await stage.store.claims.settle(session, [settlement(run, succeededVerdict, stage.nowMs)], stage.nowMs);
      const [again] = await stage.store.runs.enqueue([write], stage.nowMs);
      expect(again?.created).toBe(true);
      expect(again?.runId).not.toBe(run.runId);
    });

    it("makes one run for a key that many callers use at once, while its run ends", async () => {
      const task = await stage.task("key-race", { group: "key-race" });
      const stores = await Promise.all(Array.from({ length: 4 }, () => stage.another({ connectionsMax: 3 })));
      for (let round = 0; round < 15; round++) {
        const asked = stores.flatMap((store) =>
          [1, 2].map(() => store.runs.enqueue([stage.write(task, { key: "k" })], stage.nowMs)),
        );
        const ending = (async () => {
          const runs = await stage.claim(session, [task]);
          await stage.store.claims.settle(
            session,
            runs.map((run) => settlement(run, succeededVerdict, stage.nowMs)),
            stage.nowMs,
          );
          return runs.length;
        })();
        const answers = (await Promise.all(asked)).flat();
        const ended = await ending;
        expect(answers.filter(({ created }) => created).length, `round ${round}`).toBeLessThanOrEqual(1 + ended);
        expect(await live(task.taskId)).toBeLessThanOrEqual(1);
        for (const { runId } of answers) expect((await stage.store.runs.find(runId)).key).toBe("k");
        const left = await stage.claim(session, [task]);
        await stage.store.claims.settle(
          session,
          left.map((run) => settlement(run, succeededVerdict, stage.nowMs)),
          stage.nowMs,
        );
      }
    });

    it("joins the caller's transaction: visible after its commit, gone after its rollback", async () => {
      const task = await stage.task("tx", { overlap: "queue", group: "tx" });
      const client = await stage.sql.connect();
      try {
        await client.query("begin");
        const { runId } = await stage.store.runs.enqueueIn(client, stage.write(task), stage.nowMs);
        await expect(stage.store.runs.find(runId)).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
        await client.query("rollback");
        await expect(stage.store.runs.find(runId)).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
        await client.query("begin");
        const kept = await stage.store.runs.enqueueIn(client, stage.write(task, { key: "a" }), stage.nowMs);
        const same = await stage.store.runs.enqueueIn(client, stage.write(task, { key: "a" }), stage.nowMs);
        expect(same).toEqual({ runId: kept.runId, created: false });
        await client.query("commit");
        expect(await stage.store.runs.find(kept.runId)).toMatchObject({ state: "ready" });
        await stage.store.tasks.remove("tx", change(stage.nowMs));
        await client.query("begin");
        await expect(stage.store.runs.enqueueIn(client, stage.write(task), stage.nowMs)).rejects.toMatchObject({
          code: "TASK_UNKNOWN",
        });
        await client.query("rollback");
      } finally {
        client.release();
      }
    });

    it("with one removed task makes no run of the batch, so that a repetition duplicates none", async () => {
      const [stays, goes] = [await stage.task("stays"), await stage.task("goes")];
      await stage.store.tasks.remove("goes", change(stage.nowMs));
      const enqueuer = new Enqueuer(
        (writes, drawn, signal) => stage.store.runs.enqueue(writes, stage.nowMs, undefined, drawn, signal),
        systemClock,
      );
      const answers = await Promise.allSettled([stays, goes, stays].map((task) => enqueuer.add(stage.write(task))));
      expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      expect(answers[1]).toMatchObject({ reason: { code: "TASK_UNKNOWN" } });
      expect(await live(stays.taskId)).toBe(2);
    });

    describe("repeated after an earlier attempt", () => {
      /** Simulates an earlier attempt whose client gave up while the server was suspended: its run is inserted but not committed. */
      const stuck = async (name: string, key: string | null = null) => {
        const task = await stage.task(name);
        const [{ runId: last }] = (await stage.store.runs.enqueue([stage.write(task)], stage.nowMs)) as [Enqueued];
        const client = await stage.sql.connect();
        await client.query("begin");
        // The run gets the id that the store will draw next.
        const write = stage.write(task, { key });
        await stage.store.runs.enqueueIn(client, { ...write, runId: last + 1 }, stage.nowMs);
        return { task, write, runId: last + 1, end: () => client.query("commit").then(() => client.release()) };
      };
      const waits = async () => {
        const text = "select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like $1";
        return (await stage.one(text, [`%"${stage.schema}"%`])).n === 1;
      };

      it.each([null, "k"])(
        "makes no second run if the first is committed while the second attempt waits (key: %s)",
        async (key) => {
          const { task, write, runId, end } = await stuck(`stuck-${key}`, key);
          const again = stage.store.runs.enqueue([write], stage.nowMs, undefined, [runId]);
          await until("the second try to wait", waits);
          await end();
          expect(await again).toEqual([{ runId, created: true }]);
          expect(await live(task.taskId)).toBe(2);
        },
      );

      it("makes no second run if another server executes the same call", async () => {
        const { task, write, runId, end } = await stuck("brought");
        const again = stage.store.runs.enqueue([{ ...write, runId }], stage.nowMs);
        await until("the second to wait", waits);
        await end();
        expect(await again).toEqual([{ runId, created: true }]);
        expect(await live(task.taskId)).toBe(2);
      });

      it("uses other run numbers if the first attempt finds its numbers taken", async () => {
        const { task, write, runId, end } = await stuck("taken");
        await end();
        const [made] = await stage.store.runs.enqueue([write], stage.nowMs);
        expect(made?.created).toBe(true);
        expect(made?.runId).toBeGreaterThan(runId);
        expect(await live(task.taskId)).toBe(3);
      });
    });
  });

  describe("cancel", () => {
    it("ends an unclaimed run, and requests the end of a claimed one", async () => {
      const task = await stage.task("cancel", { group: "cancel" });
      const [ready, claimed] = [await stage.enqueue(task, { dueMs: stage.nowMs + 1_000 }), await stage.enqueue(task)];
      const [run] = (await stage.claim(session, [task])) as [ClaimedRun];
      expect(run.runId).toBe(claimed);
      expect(await stage.store.runs.cancel(ready, "why", stage.nowMs)).toBe("cancelled");
      expect(await stage.store.runs.find(ready)).toMatchObject({
        state: "cancelled",
        error: { code: "CANCELLED", message: "why" },
      });
      expect(await stage.store.runs.cancel(claimed, "why", stage.nowMs)).toBe("asked");
      expect(await stage.store.runs.recallsOpen([ready, claimed])).toEqual([claimed]);
      await expect(stage.store.runs.cancel(ready, "", stage.nowMs)).rejects.toMatchObject({ code: "RUN_STATE" });
      await expect(stage.store.runs.cancel(987_654_321, "", stage.nowMs)).rejects.toMatchObject({
        code: "RUN_UNKNOWN",
      });
    });

    it("concurrent with a claim has one outcome: never claimed, or its worker is asked to end it", async () => {
      const task = await stage.task("cancel-race", { group: "cancel-race" });
      const other = await stage.another();
      for (let round = 0; round < 60; round++) {
        const runId = await stage.enqueue(task);
        const [answer, claimed] = await Promise.all([
          other.runs.cancel(runId, "race", stage.nowMs),
          stage.claim(session, [task]),
        ]);
        expect(claimed.length, `round ${round}`).toBe(answer === "cancelled" ? 0 : 1);
        if (answer === "asked") {
          expect(await stage.store.claims.recalls(session)).toContainEqual(expect.objectContaining({ runId }));
          await stage.store.claims.settle(
            session,
            claimed.map((run) => settlement(run, succeededVerdict, stage.nowMs)),
            stage.nowMs,
          );
        }
      }
    });

    it("does not miss a claim that is committed between its two reads", async () => {
      const task = await stage.task("cancel-slip", { group: "cancel-slip" });
      const runId = await stage.enqueue(task);
      const claimer = await stage.sql.connect();
      try {
        // Simulates a claim that has updated the run's row and has not committed yet.
        await claimer.query("begin");
        await claimer.query(
          `update ${stage.schema}.run set state = 3, session_id = $2, fence = nextval('${stage.schema}.fence') where id = $1`,
          [runId, session],
        );
        const cancelling = stage.store.runs.cancel(runId, "x", stage.nowMs);
        await expect
          .poll(
            async () =>
              (
                await stage.one(
                  "select count(*) as n from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%run%'",
                  [stage.schema],
                )
              ).n,
          )
          .toBe(1);
        await claimer.query("commit");
        expect(await cancelling).toBe("asked");
      } finally {
        claimer.release();
      }
    });
  });

  describe("reading", () => {
    it("finds and lists live and ended runs by task, state and time", async () => {
      const task = await stage.task("looked-at", { group: "looked-at" });
      const [a, b] = [await stage.enqueue(task), await stage.enqueue(task, { dueMs: stage.nowMs + 9_000 })];
      const [run] = (await stage.claim(session, [task])) as [ClaimedRun];
      await stage.store.claims.settle(session, [settlement(run, succeededVerdict, stage.nowMs + 3)], stage.nowMs);
      const ids = async (filter: object) =>
        (await stage.store.runs.list({ task: "looked-at", limit: 10, ...filter })).map(({ runId }) => runId).sort();
      expect(await ids({})).toEqual([a, b]);
      const claimed = await stage.enqueue(task, { dueMs: stage.nowMs - 5 });
      await stage.claim(session, [task]);
      const ordered = await stage.store.runs.list({ task: "looked-at", limit: 10 });
      expect(ordered.map(({ runId }) => runId)).toEqual([claimed, b, a]);
      const ofAll = async (state: "ready" | "succeeded", sinceMs: number) =>
        (await stage.store.runs.list({ limit: 500, states: [state], sinceMs })).map(({ runId }) => runId);
      expect(await ofAll("ready", stage.nowMs + 9_000)).toContain(b);
      expect(await ofAll("succeeded", stage.nowMs + 3)).toContain(a);
      await expect(stage.store.runs.list({ task: "nowhere", limit: 5 })).rejects.toMatchObject({
        code: "TASK_UNKNOWN",
      });
      await stage.store.runs.cancel(claimed, "", stage.nowMs);
      expect(await ids({ states: ["succeeded"] })).toEqual([a]);
      expect(await ids({ states: ["ready", "held"] })).toEqual([b]);
      expect(await ids({ sinceMs: stage.nowMs + 4 })).toEqual([b]);
      expect(await ids({ limit: 1 })).toHaveLength(1);
      expect(await stage.store.runs.find(a)).toMatchObject({
        task: "looked-at",
        state: "succeeded",
        endedMs: stage.nowMs + 3,
        fence: run.fence,
      });
      await expect(stage.store.runs.find(987_654_321)).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
    });

    it("keeps log lines in their order", async () => {
      const runId = await stage.enqueue(await stage.task("logs"));
      const line = (i: number, level: "info" | "error") => ({
        runId,
        attempt: 1,
        atMs: stage.nowMs + i,
        level,
        message: `m${i}\0`,
        fields: { i },
      });
      const dayMs = 86_400_000;
      await stage.store.runs.writeLogs([line(2, "error"), line(1, "info"), line(-366 * dayMs, "info")], stage.nowMs);
      expect(await stage.store.runs.logs(runId, 10)).toMatchObject([
        { message: expect.stringContaining("m-"), atMs: Math.round(stage.nowMs - dayMs) },
        { message: "m1\ufffd", level: "info", fields: { i: 1 } },
        { message: "m2\ufffd", level: "error" },
      ]);
      expect(await stage.store.runs.logs(runId, 1)).toHaveLength(1);
    });
  });

  it("signals reach a listener: ready, recall, tasks, leadership, and a resync at the start", async () => {
    const stop = new AbortController();
    const heard: string[] = [];
    // Connects without a pooler: behind one, signals are polled through any connection, so there is no listening connection to cut.
    const store = await openPostgres({ url: server.direct, schema: stage.schema });
    const listening = store.signals.listen(
      (signal) => heard.push(signal.kind === "ready" ? `ready ${signal.dueMs}` : signal.kind),
      stop.signal,
    );
    await expect.poll(() => heard).toContain("resync");
    const task = await stage.task("signals", { group: "signals" });
    await expect.poll(() => heard).toContain("tasks");
    const runId = await stage.enqueue(task, { dueMs: stage.nowMs + 77 });
    await expect.poll(() => heard).toContain(`ready ${stage.nowMs + 77}`);
    await stage.claim(session, [task], stage.nowMs + 77);
    await stage.store.runs.cancel(runId, "", stage.nowMs);
    await expect.poll(() => heard).toContain("recall");
    await stage.lead(await stage.session());
    await expect.poll(() => heard).toContain("leadership");
    // The listener's connection is cut, so signals may be lost and listeners must read everything again.
    const resyncs = () => heard.filter((kind) => kind === "resync").length;
    await stage.rows(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'carillon listener' and query like '%' || $1 || '%'",
      [stage.schema],
    );
    await expect.poll(resyncs).toBe(2);
    stop.abort();
    await listening;
    await store.close();
  });
});
