import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import { postgres } from "../support/servers.ts";
import { openStage, type Stage, settlement } from "../support/store-stage.ts";

/** Tests that the store gives up a run after `workerLosses` of its attempts have ended with the loss of their worker's session. */
describe("attempts that outlive their worker's session", () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(postgres());
  });
  afterAll(() => stage.close());

  let made = 0;
  const task = (options: TaskOptions) => stage.task(`l${++made}`, { group: `l${made}`, grace: 0, ...options });

  /** The ways in which an attempt ends because its worker lost the session, by the words in the tests' titles. */
  const taken = {
    "is taken back from a worker that fell silent": async (run: ClaimedRun, session: number) => {
      await stage.store.sessions.end(session, null, stage.nowMs, `silent with ${run.runId}`);
      await stage.store.claims.reclaim(session, 0, stage.nowMs, 10);
    },
    "is cut short by the worker itself": async (run: ClaimedRun, session: number) => {
      const error = '{"code":"SESSION_LOST","message":"in doubt"}';
      const verdict = { kind: "retry", dueMs: stage.nowMs, error, cutShort: true, lost: true } as const;
      const refused = await stage.store.claims.settle(
        session,
        [settlement(run, verdict, stage.nowMs + run.attempt)],
        stage.nowMs,
      );
      expect(refused).toEqual(new Set());
    },
  };
  const ways = Object.keys(taken) as (keyof typeof taken)[];

  async function lose(of: Awaited<ReturnType<typeof task>>, way: keyof typeof taken): Promise<ClaimedRun | undefined> {
    const session = await stage.session("worker");
    const [run] = await stage.claim(session, [of]);
    if (run) await taken[way](run, session);
    return run;
  }

  it.each(ways)("a run that %s three times is reported as the cause and fails", async (way) => {
    const of = await task({ retry: 1 });
    const runId = await stage.enqueue(of);
    for (let losses = 0; losses < 3; losses++) {
      expect(await lose(of, way)).toMatchObject({ runId, attempt: losses + 1, losses });
    }
    expect(await lose(of, way)).toBeUndefined();
    const { state, attempt, error } = await stage.store.runs.find(runId);
    expect({ state, attempt, error }).toMatchObject({ state: "failed", attempt: 3, error: { code: "WORKER_LOST" } });
    expect((error as { message: string }).message).toMatch(/the cause of lost workers.*workerLosses/);
    expect(await stage.store.runs.attempts(runId)).toHaveLength(2);
  });

  it("both kinds of loss are counted together", async () => {
    const of = await task({ workerLosses: 2 });
    const runId = await stage.enqueue(of);
    for (const way of ways) await lose(of, way);
    expect((await stage.store.runs.find(runId)).state).toBe("failed");
  });

  it.each(ways)(
    "a task sets the number of losses, and with onWorkerLost: ask waits for its operator: %s",
    async (way) => {
      const once = await task({ workerLosses: 1 });
      const asks = await task({ workerLosses: 1, onWorkerLost: "ask" });
      const [failed, asked] = [await stage.enqueue(once), await stage.enqueue(asks)];
      await lose(once, way);
      expect((await stage.store.runs.find(failed)).state).toBe("failed");
      if (way !== "is taken back from a worker that fell silent") return;
      await lose(asks, way);
      expect((await stage.store.runs.find(asked)).state).toBe("undecided");
    },
  );

  it("a verdict that made its run fail counts as applied if its reply was lost", async () => {
    const of = await task({ workerLosses: 1 });
    const runId = await stage.enqueue(of);
    const session = await stage.session("worker");
    const [run] = (await stage.claim(session, [of])) as [ClaimedRun];
    for (const _ of ["first", "again"]) await taken["is cut short by the worker itself"](run, session);
    expect(await stage.store.flow.lateResults(runId)).toEqual([]);
  });

  it("a read of the session's claims includes the losses", async () => {
    const of = await task({});
    await stage.enqueue(of);
    await lose(of, "is cut short by the worker itself");
    const session = await stage.session("worker");
    await stage.claim(session, [of]);
    expect(await stage.store.claims.heldBy(session)).toMatchObject([{ attempt: 2, losses: 1 }]);
  });
});
