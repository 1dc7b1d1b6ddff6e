import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StandbyPair, sql } from "../support/standby.ts";
import { until } from "../support/store-stage.ts";
import { WatchedNodes } from "../support/watched-nodes.ts";

/**
 * Two nodes use a primary that is killed and a standby that is promoted although it lacks the last seconds. Everything that the store has
 * acknowledged to a process that is still alive must survive.
 */
describe("a fail-over to a lagging standby", () => {
  let pair: StandbyPair;
  let watched: WatchedNodes;
  beforeAll(async () => {
    pair = await StandbyPair.start();
    watched = new WatchedNodes(`${pair.url}?target_session_attrs=read-write`);
  });
  afterAll(async () => {
    await watched.stop();
    await pair.close();
  });

  it("fires no slot twice, issues no number twice, and loses no acknowledged write", async () => {
    const { began, acknowledged, lines } = watched;
    const ticksAfter = (atMs: number) => began.filter((one) => one.task === "tick" && one.atMs > atMs);
    await watched.start();
    await watched.enqueue("long");
    await until("slots fire", () => ticksAfter(0).length > 10);
    await pair.caughtUp();
    pair.line.stall();

    const lagEndsMs = Date.now() + 4_000;
    while (Date.now() < lagEndsMs) {
      await watched.enqueue("once");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    // This run is not due yet when the primary dies, so only the process that enqueued it remembers it.
    await watched.enqueue("once", { in: "3s" });
    const kept = await watched.enqueue("long");
    await until("it runs", () => began.some(({ run }) => run === kept));
    await pair.primary.kill();
    await pair.promote();
    const promotedMs = Date.now();
    await until("work goes on", () => ticksAfter(promotedMs).length > 0);
    // The recovery did not wait for a session to expire. The bench measures how fast the recovery can be.
    expect((ticksAfter(promotedMs)[0]?.atMs as number) - promotedMs).toBeLessThan(9_000);
    const open = "select from carillon.run where id = any($1)";
    await until("all ended", async () => (await sql(pair.standby, open, [acknowledged])).length === 0);

    watched.expectOnce();
    expect(watched.unseen(), "acknowledged and lost").toEqual([]);
    const rows = await sql(
      pair.standby,
      "select (select count(*)::int from carillon.run_history where id = any($1) and outcome = 0) as ended, (select count(*)::int from carillon.late_result) as late",
      [acknowledged],
    );
    expect(rows).toEqual([{ ended: acknowledged.length, late: 0 }]);
    const [recovery] = await sql(pair.standby, "select * from carillon.recovery");
    expect(recovery).toMatchObject({ missing: [] });
    expect(Number(recovery?.back_ms)).toBeGreaterThan(1_000);
    expect(new Set(lines.filter(({ level }) => level === "error").map(({ message }) => message))).toEqual(
      new Set(["the store is away; trying again until it is back"]),
    );
  });
});
