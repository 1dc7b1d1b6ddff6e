import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { every } from "../../src/schedule/schedule.ts";
import { leftQuery } from "../../src/store/postgres/claims/set-aside.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement, until } from "../support/store-stage.ts";

describe.each(everyPostgres())("runs written concurrently with a change of their task, on $title", (server) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());

  /** Returns a function that resolves with true if exactly one statement like this waits for a lock. */
  const at = (like: string) => async () => {
    const text = "select count(*)::int as count from pg_stat_activity where wait_event_type = 'Lock' and query like $1";
    return (await stage.one(text, [like])).count === 1;
  };

  const stateOf = async (runId: number) => (await stage.one("select state from $s.run where id = $1", [runId])).state;

  it("are found if their transaction ends after the resume", async () => {
    const task = await stage.task("late-enqueue");
    await stage.store.tasks.pause("late-enqueue", change(stage.nowMs));
    const runId = await madeBeside(task, () => stage.store.tasks.resume("late-enqueue", change(stage.nowMs)));
    expect(await stateOf(runId), "paused").toBe(1);
    expect(await stage.store.tasks.takeUpLeft(stage.nowMs - 1_000, stage.nowMs)).toBe(1);
    expect(await stage.store.tasks.takeUpLeft(stage.nowMs - 1_000, stage.nowMs)).toBe(0);
    const session = await stage.session();
    expect((await stage.claim(session, [task])).map((run) => run.runId)).toEqual([runId]);
  });

  it("are found although the locks of another task are held by a transaction that stays open", async () => {
    const made: { task: TaskRecord; runId: number }[] = [];
    for (const name of ["held-task", "other-task"]) {
      const task = await stage.task(name, { overlap: "queue", group: "apart" });
      await stage.store.tasks.pause(name, change(stage.nowMs));
      made.push({ task, runId: await madeBeside(task, () => stage.store.tasks.resume(name, change(stage.nowMs))) });
    }
    const [held, other] = made as [(typeof made)[number], (typeof made)[number]];
    const client = await stage.sql.connect();
    await client.query("begin");
    await client.query(`select from ${stage.schema}.gate where task_id = $1 for update`, [held.task.taskId]);
    await expect(stage.store.tasks.takeUpLeft(stage.nowMs - 1_000, stage.nowMs)).rejects.toMatchObject({
      code: "STORE_CONFLICT",
    });
    expect([await stateOf(held.runId), await stateOf(other.runId)]).toEqual([1, 2]);
    await client.query("rollback");
    client.release();
    expect(await stage.store.tasks.takeUpLeft(stage.nowMs - 1_000, stage.nowMs)).toBe(1);
    expect(await stateOf(held.runId)).toBe(2);
  });

  it("are found by the resume itself if they were written during it", async () => {
    const task = await stage.task("late-retry", { overlap: "queue", retry: { attempts: 2 }, schedule: every("1h") });
    const runId = await stage.enqueue(task);
    const session = await stage.session();
    const [run] = await stage.claim(session, [task]);
    if (!run) throw new Error("nothing was claimed");
    const pausing = stage.store.tasks.pause("late-retry", change(stage.nowMs));
    await until("the pause", async () => (await stage.store.tasks.byName("late-retry")).paused !== null);
    // The lock stops the resume after it has searched for set-aside runs and before it commits.
    const client = await stage.sql.connect();
    await client.query("begin");
    await client.query(`select from ${stage.schema}.gate where task_id = $1 for update`, [task.taskId]);
    const resuming = stage.store.tasks.resume("late-retry", change(stage.nowMs));
    await until("the resume at the gate", at(`%"${stage.schema}".gate%for update of g%`));
    const verdict = { kind: "retry" as const, dueMs: stage.nowMs, error: "{}" };
    await stage.store.claims.settle(session, [settlement(run, verdict, stage.nowMs)], stage.nowMs);
    expect(await stateOf(runId), "paused").toBe(1);
    await client.query("commit");
    client.release();
    await Promise.all([resuming, pausing]);
    expect((await stage.claim(session, [task])).map((again) => again.runId)).toEqual([runId]);
  });

  it("are searched for by an enqueue that ends after the whole resume", async () => {
    const task = await stage.task("slow-enqueue");
    await stage.store.tasks.pause("slow-enqueue", change(stage.nowMs));
    // Holding the same key stops the enqueue after it has read the task and before it commits.
    const client = await stage.sql.connect();
    await client.query("begin");
    await stage.store.runs.enqueueIn(client, stage.write(task, { key: "k" }), stage.nowMs);
    const enqueuing = stage.store.runs.enqueue([stage.write(task, { key: "k" })], stage.nowMs);
    await until("the enqueue at the key", at(`%with bounded as materialized%"${stage.schema}"%`));
    await stage.store.tasks.resume("slow-enqueue", change(stage.nowMs));
    await client.query("rollback");
    client.release();
    const [made] = await enqueuing;
    expect((await stage.claim(await stage.session(), [task])).map((run) => run.runId)).toEqual([made?.runId]);
  });

  it("are searched for by a retry that ends after the whole resume", async () => {
    const task = await stage.task("slow-retry", { retry: { attempts: 2 } });
    const runId = await stage.enqueue(task);
    const session = await stage.session();
    const [run] = await stage.claim(session, [task]);
    if (!run) throw new Error("nothing was claimed");
    await stage.store.tasks.pause("slow-retry", change(stage.nowMs));
    const client = await stage.sql.connect();
    await client.query("begin");
    await client.query(`select from ${stage.schema}.run where id = $1 for update`, [runId]);
    const verdict = { kind: "retry" as const, dueMs: stage.nowMs, error: "{}" };
    const settling = stage.store.claims.settle(session, [settlement(run, verdict, stage.nowMs)], stage.nowMs);
    await until("the retry at the run", at("%(id, fence, due_ms, started_ms, ended_ms, error, ask, lost%"));
    await stage.store.tasks.resume("slow-retry", change(stage.nowMs));
    await client.query("commit");
    client.release();
    await settling;
    expect((await stage.claim(session, [task])).map((again) => again.runId)).toEqual([runId]);
  });

  it("do not include a run that is released during the resume", async () => {
    const task = await stage.task("late-release");
    const runId = await stage.enqueue(task);
    const session = await stage.session();
    const [run] = await stage.claim(session, [task]);
    if (!run) throw new Error("nothing was claimed");
    await stage.store.tasks.pause("late-release", change(stage.nowMs));
    // The lock stops the release after it has read the task and before it commits.
    const client = await stage.sql.connect();
    await client.query("begin");
    await client.query(`select from ${stage.schema}.run where id = $1 for update`, [runId]);
    const released = settlement(run, { kind: "released" as const }, stage.nowMs);
    const releasing = stage.store.claims.settle(session, [released], stage.nowMs);
    await until("the release at the run", at(`update "${stage.schema}".run r set state = case when r.recall%`));
    let isResumed = false;
    const resuming = stage.store.tasks.resume("late-release", change(stage.nowMs)).then(() => {
      isResumed = true;
    });
    const isAtPlan = at(`%"${stage.schema}".plan%for update%`);
    await until("the resume done, or waiting", async () => isResumed || (await isAtPlan()));
    await client.query("commit");
    client.release();
    await Promise.all([releasing, resuming]);
    expect((await stage.claim(session, [task])).map((again) => again.runId)).toEqual([runId]);
  });

  /**
   * Enqueues a run in a transaction that began before the change. The transaction ends after the change, or while the change waits for the
   * lock on the task's queue of runs.
   */
  async function madeBeside(task: TaskRecord, change: () => Promise<unknown>, key: string | null = null) {
    const client = await stage.sql.connect();
    await client.query("begin");
    const { runId } = await stage.store.runs.enqueueIn(client, stage.write(task, { key }), stage.nowMs);
    let isChanged = false;
    const changing = change().then(() => {
      isChanged = true;
    });
    const isAtGate = at(`%"${stage.schema}".gate%for update of g%`);
    await until("the change done, or waiting", async () => isChanged || (await isAtGate()));
    await client.query("commit");
    client.release();
    await changing;
    return runId;
  }

  /**
   * No run is left for `takeUpLeft` if the runs of the task queue: then the enqueue holds the lock on the queue, so the edit waits
   * for its end and finds the run itself.
   */
  const byItself = 0;
  it.each<[string, TaskOptions, TaskOptions, number]>([
    ["a limit by key begins where it queued", { overlap: "queue" }, { limit: { perKey: 1 } }, byItself],
    ["a limit by key begins", {}, { limit: { perKey: 1 } }, 1],
    ["it queued, and runs may overlap", { overlap: "queue" }, {}, byItself],
    ["runs might overlap, and wait for each other", {}, { overlap: "queue" }, 1],
    ["it moves to another group", { group: "here" }, { group: "there" }, 1],
    ["its workers are chosen from now on", {}, { labels: { zone: "eu-1" } }, 1],
  ])("follow a concurrent edit: %s", async (title, before, after, left) => {
    const name = `edited-${title.replace(/\W/g, "-")}`;
    const task = await stage.task(name, before);
    let edited = task;
    const keyed = "limit" in after;
    const late = await madeBeside(
      task,
      async () => {
        edited = await stage.task(name, after);
      },
      keyed ? "k" : null,
    );
    expect(await stage.store.tasks.takeUpLeft(stage.nowMs - 1_000, stage.nowMs)).toBe(left);
    expect(await stage.store.tasks.takeUpLeft(stage.nowMs - 1_000, stage.nowMs)).toBe(0);
    // The run must equal a run that is enqueued after the edit, except for its position in the queue.
    const fields = "group_id, gate, limit_key, state";
    const hung = (id: number) => stage.one(`select ${fields} from $s.run where id = $1`, [id]);
    const found = await hung(late);
    await stage.store.runs.cancel(late, "looked at", stage.nowMs);
    const next = await stage.enqueue(edited, keyed ? { key: "k" } : {});
    expect(found).toEqual(await hung(next));
    await stage.store.runs.cancel(next, "looked at", stage.nowMs);
  });

  it("keep their slot if claimed before the check, and are counted from then on", async () => {
    const task = await stage.task("edited-claimed");
    const late = await madeBeside(task, () => stage.task("edited-claimed", { overlap: "queue" }));
    const session = await stage.session();
    const [run] = await stage.claim(session, [task]);
    expect(run?.runId).toBe(late);
    expect(await stage.store.tasks.takeUpLeft(stage.nowMs - 1_000, stage.nowMs)).toBe(1);
    const next = await stage.enqueue(task);
    const hung = "select id, gate, state from $s.run where task_id = $1 order by state desc";
    expect(await stage.rows(hung, [task.taskId])).toEqual([
      { id: late, gate: 1, state: 3 },
      { id: next, gate: 1, state: 0 },
    ]);
  });

  it.each([
    ["wait for each other", {}, { overlap: "queue" as const }],
    ["may overlap", { overlap: "queue" as const }, {}],
  ])(
    "follow an edit made while their task was paused, once it is resumed: they run %s from then on",
    async (title, before, after) => {
      const name = `edited-paused-${title.replace(/\W/g, "-")}`;
      const task = await stage.task(name, before);
      await stage.store.tasks.pause(name, change(stage.nowMs));
      const late = await madeBeside(task, () => stage.task(name, after));
      await stage.store.tasks.resume(name, change(stage.nowMs));
      const gate = "overlap" in after ? 1 : 0;
      expect(await stage.one("select gate, state from $s.run where id = $1", [late])).toEqual({ gate, state: 2 });
      expect((await stage.claim(await stage.session(), [task])).map((run) => run.runId)).toEqual([late]);
    },
  );

  it("are found by the edit itself if they were written during it", async () => {
    const task = await stage.task("edited-slowly", { overlap: "queue" });
    // The lock stops the edit after it has read the runs and before it commits.
    const client = await stage.sql.connect();
    await client.query("begin");
    await client.query(`select from ${stage.schema}.gate where task_id = $1 for update`, [task.taskId]);
    const editing = stage.task("edited-slowly", { overlap: "queue", limit: { perKey: 1 } });
    await until("the edit at the gate", at(`%"${stage.schema}".gate%for update of g%`));
    const enqueuing = stage.enqueue(task);
    const lane = () => stage.rows("select limit_key from $s.run where task_id = $1", [task.taskId]);
    await until("the run", async () => (await lane()).length === 1);
    expect(await lane(), "not of the edit").toEqual([{ limit_key: null }]);
    await client.query("commit");
    client.release();
    const [late] = await Promise.all([enqueuing, editing]);
    expect(await stage.one("select limit_key, state from $s.run where id = $1", [late])).toEqual({
      limit_key: "",
      state: 2,
    });
  });

  it.each([true, false])("end with their task if it was paused and then removed: %s", async (isPaused) => {
    const name = `late-removed-${isPaused}`;
    const task = await stage.task(name);
    if (isPaused) await stage.store.tasks.pause(name, change(stage.nowMs));
    const runId = await madeBeside(task, () => stage.store.tasks.remove(name, change(stage.nowMs)));
    expect(await stage.store.tasks.takeUpLeft(stage.nowMs - 1_000, stage.nowMs)).toBe(1);
    expect(await stage.one("select outcome from $s.run_history where id = $1", [runId])).toEqual({ outcome: 2 });
  });

  it("are searched for in fewer pages if the task was never edited", async () => {
    const task = await stage.task("of-many");
    const many = Array.from({ length: 3_000 }, () => stage.write(task, {}));
    await stage.store.runs.enqueue(many, stage.nowMs);
    const readByLook = async () => {
      const { text, values } = leftQuery(`"${stage.schema}"`, { changed: task.taskId });
      const { rows } = await stage.sql.query(`explain (analyze, buffers, format json) ${text}`, values);
      const { Plan: plan } = rows[0]["QUERY PLAN"][0];
      return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
    };
    const unedited = await readByLook();
    await stage.task("of-many", { timeout: "5m" });
    expect(await readByLook()).toBeGreaterThan(2 * unedited);
  });
});
