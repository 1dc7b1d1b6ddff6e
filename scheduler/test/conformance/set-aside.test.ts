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
    const waiting = `select count(*)::int as count from pg_stat_activity
                     where wait_event_type = 'Lock' and query like $1`;
    await until("the resume at the gate", async () => {
      return (await stage.one(waiting, [`%"${stage.schema}".gate%for update of g%`])).count === 1;
    });
    const verdict = { kind: "retry" as const, dueMs: stage.nowMs, error: "{}" };
    await stage.store.claims.settle(session, [settlement(run, verdict, stage.nowMs)], stage.nowMs);
    expect(await stateOf(runId), "paused").toBe(1);
    await client.query("commit");
    client.release();
    await Promise.all([resuming, pausing]);
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
    const waiting = `select count(*)::int as count from pg_stat_activity
                     where wait_event_type = 'Lock' and query like $1`;
    const at = (text: string) => async () => (await stage.one(waiting, [text])).count === 1;
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
