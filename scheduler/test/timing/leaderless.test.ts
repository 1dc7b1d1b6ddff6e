import pg from "pg";
import { afterAll, beforeAll, describe, it } from "vitest";
import { ownPath, sharedServer } from "../../../zookeeper/test/support/servers.ts";
import { Leaderless } from "../support/leaderless.ts";
import { postgres } from "../support/servers.ts";
import { holdLateness, lateMs } from "../support/timing.ts";

const ways = [
  { by: "the store alone", coordination: () => undefined },
  { by: "ZooKeeper", coordination: () => `zookeeper://${sharedServer()}${ownPath("leaderless")}` },
];

describe.each(ways)(
  "the leader killed with -9 while no other can be elected, coordinated by $by",
  ({ by, coordination }) => {
    const database = new pg.Client({ connectionString: postgres().url });
    beforeAll(() => database.connect());
    afterAll(() => database.end());

    it("runs that the dead leader had not claimed start as before its death", async () => {
      const cluster = new Leaderless(database, `leaderless_${process.pid}`, coordination());
      try {
        await cluster.start();
        // The slots of these five seconds before the kill are the control.
        await new Promise((resolve) => setTimeout(resolve, 5_000));
        await cluster.killLeader();
        await cluster.edit();
        await cluster.read();
        const { starts, stalls, killedAt, changedAt, slots } = cluster;
        const own = new Set(slots.filter((slot) => cluster.isOver(slot)).map(({ task, slot }) => `${task} ${slot}`));
        const counted = starts.filter(({ task, slot }) => own.has(`${task} ${slot}`));
        const before = counted.filter(({ slot }) => slot < killedAt).map((seen) => lateMs(seen, stalls));
        const after = counted
          .filter(({ slot }) => slot >= killedAt)
          .map((seen) => lateMs(seen, stalls, Math.max(seen.slot, changedAt.get(seen.task) ?? 0)));
        // Another node plans the slots that the leader has not planned, so their runs may start up to 250 ms later.
        holdLateness(`without a leader, ${by}`, after, before, 250);
      } finally {
        await cluster.close();
      }
    });
  },
);
