import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import type { Store } from "../../src/store/store.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

const runs = 1_200;
const workers = 4;
/** Number of runs that end in one turn of a worker's event loop. The worker's other runs end in the next turns. */
const batch = 75;

/** A smaller version of `bench completions`: many runs of one task, in several workers, end at the same time. */
describe.each(everyPostgres())("a burst of completions on $title", (server) => {
  let stage: Stage;
  let stores: Store[];
  beforeAll(async () => {
    stage = await openStage(server);
    stores = await Promise.all(Array.from({ length: workers }, () => stage.another()));
  });
  afterAll(() => stage.close());

  const counters = async (taskId: number) => (await stage.store.tasks.counters([taskId])).get(taskId);

  it.each([
    ["counts no places", undefined, runs],
    ["counts places, all taken", { allow: runs }, runs],
    ["counts places, half of them: the other half follows", { allow: runs / 2 }, runs / 2],
  ] as const)("of a task that %s: counters match the rows, and no row is left over", async (title, overlap, atOnce) => {
    const task = await stage.task(`burst: ${title}`.replaceAll(/[ ,]/g, "-"), overlap === undefined ? {} : { overlap });
    const writes = Array.from({ length: runs }, () => stage.write(task));
    await stage.store.runs.enqueue(writes, stage.nowMs);
    const sessions = await Promise.all(stores.map((store) => stage.session("worker", store)));
    const live = async () =>
      (
        await stage.one(
          `select count(*) filter (where state in (2, 3))::int as places from $s.run where task_id = $1`,
          [task.taskId],
        )
      ).places;

    let ended = 0;
    while (ended < runs) {
      const held: ClaimedRun[][] = [];
      for (const sessionId of sessions) held.push(await stage.claim(sessionId, [task], stage.nowMs, runs / workers));
      const claimed = held.flat().length;
      expect(claimed).toBe(Math.min(atOnce, runs - ended));
      await Promise.all(
        held.flatMap((mine, i) => {
          const settlements = mine.map((run) => settlement(run, succeededVerdict, stage.nowMs));
          const store = stores[i] as Store;
          const batches: Promise<Set<number>>[] = [];
          for (let from = 0; from < settlements.length; from += batch) {
            const some = settlements.slice(from, from + batch);
            batches.push(store.claims.settle(sessions[i] as number, some, stage.nowMs));
            // Simulates a lost reply: the same verdicts are sent again while the first request is under way.
            if (from === 0) batches.push(store.claims.settle(sessions[i] as number, some, stage.nowMs));
          }
          return batches;
        }),
      ).then((refused) => expect(refused.map(({ size }) => size).filter((size) => size > 0)).toEqual([]));
      ended += claimed;
      expect(await counters(task.taskId)).toMatchObject({ succeeded: ended, failed: 0 });
      expect(await live(), "every place that became free was given to one that waits").toBe(
        Math.min(atOnce, runs - ended),
      );
    }
    const [history, left] = [
      await stage.one(
        "select count(*)::int as rows, count(distinct id)::int as ids from $s.run_history where task_id = $1",
        [task.taskId],
      ),
      await stage.one("select count(*)::int as rows from $s.run where task_id = $1", [task.taskId]),
    ];
    expect({ ...history, left: left.rows }).toEqual({ rows: runs, ids: runs, left: 0 });
    const late = await stage.one("select count(*)::int as rows from $s.late_result");
    expect(late.rows).toBe(0);
  });
});
