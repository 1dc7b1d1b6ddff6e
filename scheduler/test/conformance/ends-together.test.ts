import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

/** If many runs end in one call, the reply is one row that contains only the runs whose end another run waits for. */
describe.each(everyPostgres())("runs that end in one call on $title", (server) => {
  let stage: Stage;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterAll(() => stage.close());

  it("each have the consequences of their own end: a place, a follower, room in a limited group", async () => {
    const serial = await stage.task("serial", { overlap: "queue" });
    const first = await stage.task("first");
    const next = await stage.task("next", { after: "first" });
    const crowd = await stage.task("crowd", { group: "crowd" });
    await stage.store.groups.limit("crowd", 2, change(stage.nowMs));
    const waits = [await stage.enqueue(serial), await stage.enqueue(serial)];
    for (let i = 0; i < 2; i++) await stage.enqueue(first);
    for (let i = 0; i < 3; i++) await stage.enqueue(crowd);
    const claimed = [...(await stage.claim(session, [serial, first])), ...(await stage.claim(session, [crowd]))];
    const of = (taskId: number) => claimed.filter((run) => run.taskId === taskId);
    expect([of(serial.taskId).length, of(first.taskId).length, of(crowd.taskId).length]).toEqual([1, 2, 2]);
    const asked = claimed.map((run) => settlement(run, succeededVerdict, stage.nowMs));
    const stale = { ...(asked[0] as (typeof asked)[0]), runId: 1_000_000, fence: 1_000_000 };
    const refused = await stage.store.claims.settle(session, [...asked, stale], stage.nowMs);
    expect([...refused]).toEqual([stale.fence]);
    expect(await stage.store.runs.find(waits[1] as number)).toMatchObject({ state: "ready" });
    const followers = await stage.rows<{ parent_id: number }>(
      "select parent_id from $s.run where task_id = $1 order by 1",
      [next.taskId],
    );
    const ended = (runs: ClaimedRun[]) => runs.map(({ runId }) => runId).toSorted((a, b) => a - b);
    expect(followers.map(({ parent_id }) => Number(parent_id))).toEqual(ended(of(first.taskId)));
    // The group was at its limit until now, which the claim of its waiting run shows.
    const freed = await stage.one("select count(*)::int as n from $s.group_freed where at_ms = $1", [stage.nowMs]);
    expect(freed.n).toBeGreaterThan(0);
    expect((await stage.claim(session, [crowd])).length).toBe(1);
  });
});
