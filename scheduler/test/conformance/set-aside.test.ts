import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { every } from "../../src/schedule.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement, until } from "../support/store-stage.ts";

describe.each(everyPostgres())("what is set aside for a pause that is over, on $title", (server) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());

  /** One statement like that waits for a lock. */
  const at = (like: string) => async () => {
    const text = "select count(*)::int as count from pg_stat_activity where wait_event_type = 'Lock' and query like $1";
    return (await stage.one(text, [like])).count === 1;
  };

  const stateOf = async (runId: number) => (await stage.one("select state from $s.run where id = $1", [runId])).state;

  it("is found when its transaction ends after the resume", async () => {
    const task = await stage.task("late-enqueue");
    await stage.store.tasks.pause("late-enqueue", change(stage.nowMs));
    const client = await stage.sql.connect();
    await client.query("begin");
    const { runId } = await stage.store.runs.enqueueIn(client, stage.write(task), stage.nowMs);
    await stage.store.tasks.resume("late-enqueue", change(stage.nowMs));
    await client.query("commit");
    client.release();
    expect(await stateOf(runId), "paused").toBe(1);
    expect(await stage.store.tasks.takeUpLeft(stage.nowMs - 1_000, stage.nowMs)).toBe(1);
    expect(await stage.store.tasks.takeUpLeft(stage.nowMs - 1_000, stage.nowMs)).toBe(0);
    const session = await stage.session();
    expect((await stage.claim(session, [task])).map((run) => run.runId)).toEqual([runId]);
  });

  it("is found by the resume itself when it came while that was under way", async () => {
    const task = await stage.task("late-retry", { overlap: "queue", retry: { attempts: 2 }, schedule: every("1h") });
    const runId = await stage.enqueue(task);
    const session = await stage.session();
    const [run] = await stage.claim(session, [task]);
    if (!run) throw new Error("nothing was claimed");
    const pausing = stage.store.tasks.pause("late-retry", change(stage.nowMs));
    await until("the pause", async () => (await stage.store.tasks.byName("late-retry")).paused !== null);
    // Holds the resume between its look for what is set aside and its end.
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

  it("is looked for by the enqueue that came to its end after the whole resume", async () => {
    const task = await stage.task("slow-enqueue");
    await stage.store.tasks.pause("slow-enqueue", change(stage.nowMs));
    // Holds the enqueue between its look at the task and its end: the key may be taken.
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

  it("is looked for by the retry that came to its end after the whole resume", async () => {
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
    await until("the retry at the run", at("%(id, fence, due_ms, started_ms, ended_ms, error, ask)%"));
    await stage.store.tasks.resume("slow-retry", change(stage.nowMs));
    await client.query("commit");
    client.release();
    await settling;
    expect((await stage.claim(session, [task])).map((again) => again.runId)).toEqual([runId]);
  });

  it("is nothing that is given back while the resume comes", async () => {
    const task = await stage.task("late-release");
    const runId = await stage.enqueue(task);
    const session = await stage.session();
    const [run] = await stage.claim(session, [task]);
    if (!run) throw new Error("nothing was claimed");
    await stage.store.tasks.pause("late-release", change(stage.nowMs));
    // Holds the release between its look at the task and its end.
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

  it("ends with its task when that was removed meanwhile", async () => {
    const task = await stage.task("late-removed");
    await stage.store.tasks.pause("late-removed", change(stage.nowMs));
    const client = await stage.sql.connect();
    await client.query("begin");
    const { runId } = await stage.store.runs.enqueueIn(client, stage.write(task), stage.nowMs);
    await stage.store.tasks.remove("late-removed", change(stage.nowMs));
    await client.query("commit");
    client.release();
    expect(await stage.store.tasks.takeUpLeft(stage.nowMs - 1_000, stage.nowMs)).toBe(1);
    expect(await stage.one("select outcome from $s.run_history where id = $1", [runId])).toEqual({ outcome: 2 });
  });
});
