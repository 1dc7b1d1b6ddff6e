import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ownPath, sharedServer } from "../../../zookeeper/test/support/servers.ts";
import { Leaderless, tasks, woken } from "../support/leaderless.ts";
import { postgres } from "../support/servers.ts";

const ways = [
  { by: "the store alone", coordination: () => undefined },
  { by: "ZooKeeper", coordination: () => `zookeeper://${sharedServer()}${ownPath("leader-killed")}` },
];
/**
 * Tolerance in ms when two times are compared: a process's estimate of the store's clock is wrong by up to half a round trip, and the time
 * of a log line (`at`) is read from this machine's clock.
 */
const clockErrorMs = 5;

describe.each(ways)("the leader killed with -9 while no leader can be elected, coordinated by $by", (way) => {
  const database = new pg.Client({ connectionString: postgres().url });
  const schema = (when: string) => `leader_killed_${when}_${way.by.length}_${process.pid}`;
  const moments = ["at its start", "after a while"] as const;
  const clusters = new Map<string, Leaderless>();

  beforeAll(async () => {
    await database.connect();
    const [early, late] = moments.map((moment, i) => {
      const cluster = new Leaderless(database, schema(`${i}`), way.coordination());
      clusters.set(moment, cluster);
      return cluster;
    }) as [Leaderless, Leaderless];
    await late.start();
    await early.start();
    await early.killLeader();
    await early.edit();
    await late.killLeader();
    await late.edit();
    for (const cluster of clusters.values()) await cluster.read();
  });

  afterAll(async () => {
    for (const cluster of clusters.values()) await cluster.close();
    await database.end();
  });

  describe.each(moments)("%s:", (moment) => {
    const here = () => clusters.get(moment) as Leaderless;
    const keyOf = ({ task, slot }: { task: string; slot: number }) => `${task} ${slot}`;
    const over = () => here().slots.filter((slot) => here().isOver(slot));

    test("slots that the leader had planned and slots it had not planned came due", () => {
      const after = over().filter(({ slot }) => slot > here().killedAt);
      const rescued = after.filter(({ term }) => term === null);
      // A leader that was killed at its start may not have planned anything yet.
      if (moment !== "at its start") expect(after.length - rescued.length).toBeGreaterThanOrEqual(tasks / 2);
      expect(rescued.filter(({ task }) => task.startsWith("again")).length).toBeGreaterThanOrEqual(tasks / 2);
      for (const task of woken) expect(rescued.filter((slot) => slot.task === task).length, task).toBeGreaterThan(1);
    });

    test("no slot is lost: every second of every task is in the ledger, and every due run has ended", () => {
      const regular = here().slots.filter(({ task }) => !task.startsWith("delayed"));
      const names = new Set(regular.map(({ task }) => task));
      expect(names.size).toBe(tasks + woken.length / 2);
      for (const task of names) {
        const times = regular.flatMap((one) => (one.task === task ? [one.slot] : [])).sort((a, b) => a - b);
        const [first, last] = [times[0] as number, times.at(-1) as number];
        expect(last, task).toBeGreaterThan(here().endedAt - 1_000);
        expect(times, task).toEqual(Array.from({ length: (last - first) / 1_000 + 1 }, (_, i) => first + i * 1_000));
      }
      expect(over().filter(({ outcome, ends }) => outcome !== 1 || ends !== 1)).toEqual([]);
    });

    test("no slot is duplicated: none started twice", () => {
      expect(here().starts.map(keyOf).sort()).toEqual([...new Set(here().starts.map(keyOf))].sort());
    });

    test("nothing starts early", () => {
      expect(here().starts.filter(({ at, slot }) => at < slot - clockErrorMs)).toEqual([]);
    });
  });
});
