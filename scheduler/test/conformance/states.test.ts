import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isCarillonError } from "../../src/base/errors.ts";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import { type LiveState, liveStates, type Outcome, outcomes, type RunState } from "../../src/run/run.ts";
import { at } from "../../src/schedule/schedule.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { type RunEvent, runEvents, runTransition } from "../oracle/run-table.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement } from "../support/store-stage.ts";

type State = LiveState | Outcome;

/** Tests every event in every state, with the store's real calls, against the table in run.ts. */
describe.each(everyPostgres())("run states on $title", (server) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());

  let made = 0;
  /** One run that is due in a minute, with its task and the sessions that it needs. */
  interface Scene {
    task: TaskRecord;
    runId: number;
    session: number;
    /** The claimed run of another worker that takes up the task's limit, if there is one. */
    blocker: ClaimedRun | undefined;
    claimed: ClaimedRun | undefined;
  }
  const dueMs = () => stage.nowMs + 60_000;
  const end = (scene: { session: number }, run: ClaimedRun, verdict: Verdict) =>
    stage.store.claims.settle(scene.session, [settlement(run, verdict, stage.nowMs)], stage.nowMs);
  const ended = (outcome: "succeeded" | "failed" | "cancelled"): Verdict => ({
    kind: "ended",
    outcome,
    result: null,
    error: null,
  });

  async function into(state: State, event: RunEvent): Promise<Scene> {
    const skips = state === "skipped" || event === "skip";
    const gated = state === "held" || skips || event === "admit" || event === "demote";
    // The run must be of the kind that the event concerns: an edit withdraws runs of planned slots, and a pause holds enqueued runs.
    const planned = (event === "withdraw" || event === "expire") && state !== "paused";
    const options: TaskOptions = {
      group: `g${++made}`,
      overlap: skips ? "skip" : gated ? "queue" : "allow",
      onWorkerLost: state === "undecided" || event === "lose: ask" ? "ask" : event === "lose: fail" ? "fail" : "retry",
      grace: 0,
      misfire: "skip",
      ...(planned ? { schedule: at(dueMs()) } : {}),
    };
    const task = await stage.task(`t${made}`, options);
    const session = await stage.session("worker");
    let blocker: ClaimedRun | undefined;
    if (state === "held" || state === "skipped") {
      await stage.enqueue(task);
      [blocker] = await stage.claim(await stage.session("worker"), [task]);
    }
    if (planned) await stage.plan([task], session, dueMs());
    else await stage.enqueue(task, { dueMs: dueMs() });
    const { id: runId } = (await stage.one("select id from $s.run where task_id = $1 and due_ms = $2", [
      task.taskId,
      dueMs(),
    ])) as { id: number };
    const scene: Scene = { task, runId, session, blocker, claimed: undefined };
    if (state === "paused") await stage.store.tasks.pause(task.name, change(stage.nowMs));
    if (state === "skipped") await stage.store.plans.admitHeld(dueMs(), dueMs());
    if (state === "undecided") {
      await stage.claim(session, [task], dueMs());
      await lose(scene);
    }
    if (state === "claimed" || state === "succeeded" || state === "failed" || state === "cancelled") {
      [scene.claimed] = await stage.claim(session, [task], dueMs());
      if (state !== "claimed") await end(scene, scene.claimed as ClaimedRun, ended(state));
    }
    expect(await stateOf(scene), "the state it was to be brought into").toBe(state);
    return scene;
  }

  async function fire(event: RunEvent, scene: Scene): Promise<unknown> {
    const { task, runId, session, blocker } = scene;
    // A run that was never claimed has no fence, so the verdict uses a fence that no claim has.
    const run: ClaimedRun = scene.claimed ?? {
      runId,
      taskId: task.taskId,
      version: task.version,
      fence: 1,
      attempt: 1,
      dueMs: dueMs(),
      slotMs: null,
      key: null,
      payload: null,
      priority: 5,
      linked: true,
    };
    const { plans, runs, tasks } = stage.store;
    switch (event) {
      case "admit":
        if (blocker) await end(scene, blocker, ended("succeeded"));
        return plans.admitHeld(stage.nowMs, stage.nowMs);
      case "demote":
        return stage.enqueue(task);
      case "claim":
        return stage.claim(session, [task], dueMs());
      case "release":
        return end(scene, run, { kind: "released" });
      case "succeed":
        return end(scene, run, ended("succeeded"));
      case "retry":
        return end(scene, run, { kind: "retry", dueMs: stage.nowMs, error: null });
      case "fail":
        return end(scene, run, ended("failed"));
      case "cancel confirmed":
        return end(scene, run, ended("cancelled"));
      case "lose: retry":
      case "lose: fail":
      case "lose: ask":
        return lose(scene);
      case "decide: retry":
        return stage.store.flow.decide(runId, "retry", "", stage.nowMs, "test");
      case "decide: fail":
        return stage.store.flow.decide(runId, "fail", "", stage.nowMs, "test");
      case "cancel":
        return runs.cancel(runId, "", stage.nowMs);
      case "skip":
        return plans.admitHeld(dueMs(), dueMs());
      case "expire":
        return stage.claim(session, [task], dueMs() + 20_000);
      case "withdraw":
        return tasks.save({ ...task.definition, description: "edited" }, null, change(stage.nowMs));
      case "pause":
        return tasks.pause(task.name, change(stage.nowMs));
      case "resume":
        return tasks.resume(task.name, change(stage.nowMs));
    }
  }

  /** Ends the session at the run's due time, so the run may have started. */
  async function lose({ session }: Scene) {
    await stage.store.sessions.end(session, null, dueMs(), "silent");
    return stage.store.claims.reclaim(session, 0, stage.nowMs, 100);
  }

  async function stateOf({ runId, task }: Scene): Promise<RunState> {
    try {
      return (await stage.store.runs.find(runId)).state;
    } catch (error) {
      // A withdrawn slot leaves neither a run nor a ledger row.
      if (!isCarillonError(error, "RUN_UNKNOWN")) throw error;
      expect(await stage.one("select count(*) as n from $s.slot where task_id = $1", [task.taskId])).toEqual({ n: 0 });
      return "withdrawn";
    }
  }

  const states: State[] = [...liveStates, ...outcomes];
  const table = states.flatMap((state) =>
    runEvents.map((event) => [state, event, runTransition(state, event)] as const),
  );
  it.each(table)("%s + %s → %s", async (state, event, next) => {
    const scene = await into(state, event);
    try {
      await fire(event, scene);
    } catch (error) {
      // Only two refused events throw: cancelling a run that has ended, and deciding on a run that awaits no decision.
      expect((error as { code?: string }).code).toBe("RUN_STATE");
      expect(
        event.startsWith("decide") ? state !== "undecided" : event === "cancel" && outcomes.includes(state as Outcome),
      ).toBe(true);
    }
    expect(await stateOf(scene)).toBe(next ?? state);
    if (next === undefined && (liveStates as readonly string[]).includes(state)) {
      const kept = await stage.rows("select attempt, fence from $s.run where id = $1", [scene.runId]);
      const lost = state === "undecided";
      expect(kept).toEqual([
        { attempt: scene.claimed || lost ? 1 : 0, fence: scene.claimed?.fence ?? (lost ? expect.any(Number) : null) },
      ]);
    }
  });

  it("an event that only requests something leaves a mark for the worker", async () => {
    const cancelled = await into("claimed", "cancel");
    await fire("cancel", cancelled);
    expect(await stage.store.claims.recalls(cancelled.session)).toMatchObject([
      { runId: cancelled.runId, kind: "cancel" },
    ]);
    const paused = await into("claimed", "pause");
    await fire("pause", paused);
    expect(await stage.store.claims.recalls(paused.session)).toMatchObject([{ runId: paused.runId, kind: "withdraw" }]);
  });
});
