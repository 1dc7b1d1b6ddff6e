import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type OperationRecord,
  type OperationRequest,
  operationEvents,
  operationStates,
  operationTransition,
} from "../../src/run/operations.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, settlement, until } from "../support/store-stage.ts";

describe.each(everyPostgres())("operations on $title", (server) => {
  let stage: Stage;
  let session: number;
  let tokens = 0;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterAll(() => stage.close());

  const request = (given: Partial<OperationRequest>): OperationRequest => ({
    kind: "cancel",
    filter: {},
    author: "test",
    reason: "because",
    ...given,
  });
  const begin = (given: Partial<OperationRequest>) =>
    stage.store.operations.begin(request(given), `token ${++tokens}`, stage.nowMs);
  const step = (id: number, ms = 0, store = stage.store) => store.operations.step(stage.nowMs + ms, id);
  const find = (id: number) => stage.store.operations.find(id);
  async function carryOut(id: number, ms = 0) {
    while ((await step(id, ms)).stepped !== null);
    return find(id);
  }
  const enqueue = async (name: string, count: number) => {
    const task = await stage.task(name, { group: name });
    await stage.store.runs.enqueue(
      Array.from({ length: count }, () => stage.write(task)),
      stage.nowMs,
    );
    return task;
  };
  /** Simulates a process that took a batch, carried out a part of it and was killed. */
  async function dieAmidABatch(id: number, name: string, cancelled: number) {
    const runs = await stage.store.runs.list({ task: name, states: ["ready"], limit: 1_000 });
    const items = runs.sort((a, b) => a.runId - b.runId).slice(0, 50);
    await stage.rows("update $s.operation set batch = $2, steps = steps + 1, next_ms = $3 where id = $1", [
      id,
      JSON.stringify(items.map(({ runId }) => ({ id: runId, name }))),
      stage.nowMs + 5_000,
    ]);
    for (const { runId } of items.slice(0, cancelled)) await stage.store.runs.cancel(runId, "", stage.nowMs);
  }

  it("pause and resume the matching tasks, and no others", async () => {
    for (const name of ["eu-a", "eu-b", "us-a"]) await stage.task(name);
    const filter = { matching: "eu-*" };
    expect(await stage.store.operations.preview(request({ kind: "pause", filter }), stage.nowMs, 10)).toEqual({
      total: 2,
      first: ["eu-a", "eu-b"],
    });
    expect(await carryOut(await begin({ kind: "pause", filter }))).toMatchObject({
      state: "done",
      total: 2,
      done: 2,
      failed: 0,
    });
    const paused = async () => (await stage.store.tasks.list()).filter((task) => task.paused).map(({ name }) => name);
    expect(await paused()).toEqual(["eu-a", "eu-b"]);
    expect((await stage.store.tasks.byName("eu-a")).paused).toMatchObject({ by: "test", why: "because" });
    expect(await carryOut(await begin({ kind: "resume", filter: { all: true } }))).toMatchObject({ total: 2, done: 2 });
    expect(await paused()).toEqual([]);
  });

  it("cancel the runs that were live when they began, and count those that ended by themselves", async () => {
    const task = await enqueue("cancelled", 120);
    const id = await begin({ filter: { task: "cancelled" } });
    // A later run may have a lower id than an earlier one, because each process draws ids in blocks.
    const later = [await stage.enqueue(task), await stage.enqueue(task, { key: "later" })];
    const [one] = await stage.claim(session, [task], stage.nowMs, 1);
    await stage.store.claims.settle(
      session,
      [settlement(one!, { kind: "ended", outcome: "succeeded", result: null, error: null }, stage.nowMs)],
      stage.nowMs,
    );
    expect(await carryOut(id)).toMatchObject({ state: "done", total: 120, done: 119, passed: 1, failed: 0 });
    expect(
      (await stage.store.runs.list({ task: "cancelled", states: ["ready"], limit: 9 })).map(({ runId }) => runId),
    ).toEqual(later);
  });

  it("count a running run as cancelled if it ends so, and as too late if it ends otherwise", async () => {
    const task = await enqueue("running", 4);
    const runs = await stage.claim(session, [task], stage.nowMs, 3);
    const id = await begin({ filter: { task: "running" } });
    const of = ({ state, total, done, passed, asked, late, failed }: OperationRecord) => ({
      state,
      counts: [total, done, passed, asked, late, failed],
    });
    expect(of(await carryOut(id))).toEqual({ state: "running", counts: [4, 1, 0, 3, 0, 0] });
    const end = (run: (typeof runs)[number], outcome: "cancelled" | "succeeded") =>
      stage.store.claims.settle(
        session,
        [settlement(run, { kind: "ended", outcome, result: null, error: null }, stage.nowMs)],
        stage.nowMs,
      );
    await end(runs[0]!, "cancelled");
    await end(runs[1]!, "succeeded");
    expect(of(await carryOut(id, 1_000))).toEqual({ state: "running", counts: [4, 2, 0, 1, 1, 0] });
    await end(runs[2]!, "cancelled");
    expect(of(await carryOut(id, 60_000))).toEqual({ state: "done", counts: [4, 3, 0, 0, 1, 0] });
  });

  it("count tasks that began to match between the count and their step", async () => {
    for (const name of ["late-a", "late-b"]) await stage.task(name);
    const paused = { author: "test", reason: "", nowMs: stage.nowMs };
    await stage.store.tasks.pause("late-a", paused);
    const id = await begin({ kind: "resume", filter: { matching: "late-*" } });
    await stage.store.tasks.pause("late-b", paused);
    expect(await find(id)).toMatchObject({ total: 1 });
    expect(await carryOut(id)).toMatchObject({ state: "done", total: 2, done: 2, passed: 0, failed: 0 });
  });

  it("undo no later change: a process frozen with a batch resumes without effect", async () => {
    const names = ["stood-a", "stood-b"];
    for (const name of names) await stage.task(name);
    const id = await begin({ kind: "pause", filter: { matching: "stood-*" } });
    const slow = await stage.another();
    const client = await stage.sql.connect();
    let late: Promise<unknown> = Promise.resolve();
    try {
      // The slow process has taken the batch. Before it reaches the first task, another process has carried out and counted the whole
      // batch, and an operator has resumed the tasks.
      await client.query("begin");
      await client.query(`select from ${stage.schema}.task where name = any($1) for update`, [names]);
      late = step(id, 0, slow);
      const batch = async () => (await stage.one("select batch from $s.operation where id = $1", [id])).batch;
      await until("the batch is taken", async () => (await batch()) !== null);
      const counted = `batch = null, done = 2, steps = steps + 1, cursor = '{"id": 1000000}', next_ms = created_ms`;
      await client.query(`update ${stage.schema}.operation set ${counted} where id = $1`, [id]);
      await client.query("commit");
    } finally {
      client.release();
    }
    await late;
    const left = (await stage.store.tasks.list()).filter(({ name, paused }) => names.includes(name) && paused);
    expect(left).toEqual([]);
    expect(await carryOut(id)).toMatchObject({ state: "done", done: 2 });
  });

  it("rerun ended runs, once each, with their payloads", async () => {
    const task = await stage.task("rerun", { group: "rerun" });
    await stage.store.runs.enqueue(
      Array.from({ length: 250 }, (_, n) => stage.write(task, { payload: JSON.stringify({ n }) })),
      stage.nowMs,
    );
    const runs = await stage.claim(session, [task]);
    const error = '{"message":"no"}';
    const batch = runs.map((run) =>
      settlement(run, { kind: "ended", outcome: "failed", result: null, error }, stage.nowMs),
    );
    await stage.store.claims.settle(session, batch, stage.nowMs);
    const rerun: Partial<OperationRequest> = { kind: "rerun", filter: { task: "rerun", states: ["failed"] } };
    expect(
      await carryOut(await begin({ kind: "rerun", filter: { task: "rerun", states: ["succeeded"] } })),
    ).toMatchObject({ total: 0 });
    expect(await carryOut(await begin(rerun))).toMatchObject({ state: "done", total: 250, done: 250 });
    const made = await stage.rows("select payload->>'n' as n from $s.run where task_id = $1", [task.taskId]);
    expect(new Set(made.map(({ n }) => Number(n))).size).toBe(250);
    // A failed run that was run again no longer counts as a dead letter.
    expect(await stage.store.deadLetters.groups({ task: "rerun" })).toEqual({
      groups: [],
      total: { groups: 0, letters: 0 },
    });
  });

  it.each([
    { history: "all", key: null },
    { history: "all", key: "k" },
    { history: "failures", key: null },
  ] as const)(
    "rerunning an ended run with one new run number makes one run, whatever happened since ($history, key $key)",
    async ({ history, key }) => {
      const task = await stage.task(`numbered-${history}-${key}`, { group: `numbered-${history}-${key}`, history });
      const run = await stage.enqueue(task, { key });
      const end = async (outcome: "succeeded" | "failed") => {
        const [claimed] = await stage.claim(session, [task]);
        const verdict = { kind: "ended", outcome, result: null, error: null } as const;
        const ended = { ...settlement(claimed!, verdict, stage.nowMs), unkept: history === "failures" };
        await stage.store.claims.settle(session, [ended], stage.nowMs);
      };
      await end("failed");
      const { drawn } = await stage.one<{ drawn: number }>("select nextval('$s.run_id') as drawn");
      const again = () => stage.store.operations.rerun(run, { author: "test", reason: "", nowMs: stage.nowMs }, drawn);
      const made = { runId: drawn, created: true };
      expect(await Promise.all([again(), again(), again()])).toEqual([made, made, made]);
      await end("succeeded");
      expect(await again()).toEqual(made);
      expect(await stage.rows("select from $s.run where task_id = $1", [task.taskId])).toEqual([]);
      const named = await stage.one("select count(*) as n from $s.audit where act = 'rerun' and named = $1", [
        String(run),
      ]);
      expect(named).toEqual({ n: 1 });
    },
  );

  it.each(["pause", "resume"] as const)(
    "pass over a task that is removed after its batch was taken, and %s the others",
    async (kind) => {
      const names = ["gone", "kept"].map((name) => `${kind}-${name}`);
      const tasks = [await stage.task(names[0] as string), await stage.task(names[1] as string)];
      const by = { author: "", reason: "", nowMs: stage.nowMs };
      if (kind === "resume") for (const name of names) await stage.store.tasks.pause(name, by);
      const id = await begin({ kind, filter: { matching: `${kind}-*` } });
      const batch = JSON.stringify(tasks.map(({ taskId, name }) => ({ id: taskId, name })));
      await stage.rows("update $s.operation set batch = $2, steps = steps + 1 where id = $1", [id, batch]);
      await stage.store.tasks.remove(names[0] as string, by);
      expect(await carryOut(id)).toMatchObject({ state: "done", total: 2, done: 1, passed: 1, failed: 0 });
      expect((await stage.store.tasks.byName(names[1] as string)).paused !== null).toBe(kind === "pause");
    },
  );

  it("count the failures of a removed task as failed, and run the others again", async () => {
    const tasks = [await stage.task("again-gone"), await stage.task("again-kept")];
    for (const task of tasks) await stage.enqueue(task);
    const end = { kind: "ended", outcome: "failed", result: null, error: '{"message":"no"}' } as const;
    const runs = await stage.claim(session, tasks);
    await stage.store.claims.settle(
      session,
      runs.map((run) => settlement(run, end, stage.nowMs)),
      stage.nowMs,
    );
    const id = await begin({ kind: "rerun", filter: { matching: "again-*" } });
    await stage.store.tasks.remove("again-gone", { author: "", reason: "", nowMs: stage.nowMs });
    expect(await carryOut(id)).toMatchObject({
      state: "done",
      done: 1,
      failed: 1,
      error: expect.stringMatching(/^run \d+: its task was removed$/),
    });
  });

  it("continue exactly where a killed process stopped: a half-done batch counts once", async () => {
    await enqueue("killed", 120);
    const id = await begin({ filter: { task: "killed" } });
    await dieAmidABatch(id, "killed", 30);
    // No other process takes over the batch while the process that took it may be alive.
    expect(await step(id, 100)).toEqual({ stepped: null, nextMs: stage.nowMs + 5_000 });
    expect(await carryOut(id, 6_000)).toMatchObject({ state: "done", total: 120, done: 120, passed: 0 });
  });

  it("leave nothing of a step that did not commit, and everything of one that did", async () => {
    const task = await stage.task("atomic", { group: "atomic" });
    await stage.store.runs.enqueue(
      Array.from({ length: 300 }, () => stage.write(task)),
      stage.nowMs,
    );
    const runs = await stage.claim(session, [task]);
    const verdict = { kind: "ended", outcome: "failed", result: null, error: null } as const;
    await stage.store.claims.settle(
      session,
      runs.map((run) => settlement(run, verdict, stage.nowMs)),
      stage.nowMs,
    );
    const id = await begin({ kind: "redrive", filter: { task: "atomic" } });
    const client = await stage.sql.connect();
    try {
      // Steps that write runs wait for this lock, so the connection of the step can be killed in the middle.
      await client.query("begin");
      await client.query(`lock table ${stage.schema}.run in share mode`);
      const other = await stage.another();
      const dying = step(id, 0, other).catch((error) => error);
      const waiting = `select pid from pg_stat_activity where wait_event_type = 'Lock' and query like '%${stage.schema}%'`;
      await until("the step waits", async () => (await stage.rows(waiting)).length > 0);
      await stage.rows(`select pg_terminate_backend(pid) from (${waiting}) w`);
      expect(await dying).toMatchObject({ code: "STORE_UNREACHABLE" });
    } finally {
      await client.query("rollback");
      client.release();
    }
    expect(await find(id)).toMatchObject({ state: "running", done: 0 });
    await step(id);
    expect(await find(id)).toMatchObject({ state: "running", done: 200 });
    expect(await carryOut(id)).toMatchObject({ state: "done", done: 300, total: 300 });
    expect((await stage.one("select count(*) as n from $s.run where task_id = $1", [task.taskId])).n).toBe(300);
  });

  it("count correctly however many processes step them at once", async () => {
    await enqueue("crowd", 230);
    const id = await begin({ filter: { task: "crowd" } });
    const stores = [stage.store, await stage.another(), await stage.another()];
    await Promise.all(
      stores.map(async (store) => {
        // The given times of a process's steps are so far apart that each step treats the batches of other processes as those of dead
        // processes.
        for (let ms = 0; (await find(id)).endedMs === null; ms += 60_000) await step(id, ms, store);
      }),
    );
    const { done, passed, failed } = await find(id);
    expect({ done: done + passed, failed }).toEqual({ done: 230, failed: 0 });
    expect(
      (await stage.store.tasks.counters([(await stage.store.tasks.byName("crowd")).taskId])).values().next().value,
    ).toMatchObject({ cancelled: 230 });
  });

  it("begin once per token, and take turns", async () => {
    await stage.task("turn-a");
    const asked = request({ kind: "pause", filter: { matching: "turn-*" } });
    const ids = await Promise.all([1, 2].map(() => stage.store.operations.begin(asked, "same", stage.nowMs)));
    expect(ids[0]).toBe(ids[1]);
    const other = await begin({ kind: "resume", filter: { matching: "turn-*" } });
    const turns: (number | null)[] = [];
    for (let ms = 1; ms < 5; ms++) turns.push((await stage.store.operations.step(stage.nowMs + ms)).stepped);
    expect(new Set(turns.slice(0, 2))).toEqual(new Set([ids[0], other]));
    expect((await stage.store.operations.list(2)).map(({ operationId }) => operationId)).toEqual([other, ids[0]]);
    for (const id of [ids[0]!, other]) await carryOut(id, 10);
  });

  it("fail on a permanent error, which is recorded, and on no other error", async () => {
    const id = await begin({
      kind: "backfill",
      filter: { task: (await stage.task("broken", { schedule: { type: "at", atMs: 1_000 } })).name },
      range: { fromMs: 0, toMs: 2_000, perSecond: null, reverse: false, missed: false },
    });
    await stage.store.tasks.remove("broken", { author: "", reason: "", nowMs: stage.nowMs });
    await step(id);
    expect(await find(id)).toMatchObject({ state: "failed", error: expect.stringMatching(/^TASK_UNKNOWN: /) });
  });

  it("end no earlier than their last step, even if the stop was requested before it and waited for the store", async () => {
    await enqueue("stopped-late", 120);
    const id = await begin({ filter: { task: "stopped-late" } });
    await step(id, 5_000);
    await stage.store.operations.stop(id, stage.nowMs + 1_000);
    const { state, endedMs } = await find(id);
    expect([state, endedMs]).toEqual(["stopped", stage.nowMs + 5_000]);
  });

  it("refuse unknown kinds and filters", async () => {
    await expect(begin({ filter: {} })).rejects.toMatchObject({ code: "FILTER_EMPTY" });
    await expect(begin({ filter: { task: "nobody" } })).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
    await expect(find(999_999)).rejects.toMatchObject({ code: "OPERATION_UNKNOWN" });
    await expect(stage.store.operations.stop(999_999, 0)).rejects.toMatchObject({ code: "OPERATION_UNKNOWN" });
  });

  it("follow their table: every state × every event", async () => {
    let made = 0;
    for (const state of operationStates) {
      for (const event of operationEvents) {
        const name = `table-${++made}`;
        await enqueue(name, event === "nothing left" ? 0 : 2);
        const amid = state === "stopping" || /batch done|amid/.test(event);
        const id = await begin({ filter: { task: name } });
        if (amid) await dieAmidABatch(id, name, 0);
        const ended = !["running", "stopping"].includes(state);
        await stage.rows("update $s.operation set state = $2, ended_ms = $3 where id = $1", [
          id,
          state,
          ended ? stage.nowMs : null,
        ]);
        const stop = () => stage.store.operations.stop(id, stage.nowMs);
        if (event === "stop" || event === "stop amid a batch") {
          const refused =
            operationTransition(state, event) === undefined && state !== "stopping" && state !== "stopped";
          if (state === "stopping" && event === "stop") continue; // with a batch under way, the event is "stop amid a batch"
          if (refused) await expect(stop()).rejects.toMatchObject({ code: "OPERATION_STATE" });
          else await stop();
        } else if (event === "break") {
          // Creates a cursor that makes every step fail with the same error.
          await stage.rows(`update $s.operation set cursor = '{"id": "x"}', batch = null where id = $1`, [id]);
          await step(id, 6_000);
        } else if (event === "kill -9") {
          // A killed process reports nothing, so the row stays unchanged.
        } else if (state === "stopping" && event !== "batch done") {
          continue; // With a batch under way, no other event can occur.
        } else await step(id, 6_000);
        expect((await find(id)).state, `${state}, ${event}`).toBe(operationTransition(state, event) ?? state);
        await stage.rows("update $s.operation set ended_ms = 1 where id = $1", [id]);
      }
    }
  });
});
