import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, until } from "../support/store-stage.ts";

const [count, aheadMs] = [40_000, 12_000];
/**
 * Usual claim-ahead time in ms. At the assumed claim rate, workers start to claim this burst 2 s ahead instead, which is longer than a busy
 * machine delays a process.
 */
const claimAheadMs = 100;

describe.each(everyPostgres())("a burst of runs due at one instant, on $title", (server) => {
  let stage: Stage;
  let tower: Carillon | undefined;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(async () => {
    await tower?.stop();
    await stage.close();
  });

  it("is claimed earlier by the time it takes, and other due runs no earlier than usual", async () => {
    const running = carillon({
      store: server.url,
      schema: stage.schema,
      handleSignals: false,
      claimAhead: claimAheadMs,
      log: silentLog,
    });
    tower = running;
    const begun = { mass: 0, early: 0, few: 0 };
    const group = { group: "masses" };
    const mass = running.task("mass", group, (run) => {
      begun.mass++;
      if (Date.now() < run.due.getTime()) begun.early++;
    });
    const few = running.task("few", { group: "few" }, () => void begun.few++);
    await running.start();
    // The runs are first due in an hour. Once all are enqueued, one statement makes them due together; heartbeats report the new due time.
    const laterMs = Date.now() + 3_600_000;
    await Promise.all(Array.from({ length: count }, () => mass.enqueue(undefined, { at: laterMs })));
    const { ms: nowMs } = await stage.store.clock();
    const dueMs = Math.ceil(nowMs) + aheadMs;
    await stage.rows("update $s.run set due_ms = $1 where due_ms = $2", [dueMs, laterMs]);
    await few.enqueue(undefined, { at: dueMs - aheadMs / 2 });
    await until("all have begun", () => begun.mass === count && begun.few === 1);
    const ahead = async (task: string) =>
      stage.one(
        `select count(*) as runs, max(due_ms - claimed_ms) as most from $s.run_history h join $s.task t on t.id = h.task_id
         where t.name = '${task}'`,
      );
    await until("all are written", async () => (await ahead("mass")).runs === count);
    expect(begun.early).toBe(0);
    expect((await ahead("mass")).most).toBeGreaterThan(claimAheadMs);
    expect((await ahead("few")).most).toBeLessThanOrEqual(claimAheadMs);
  });
});
