/**
 * Plays rounds of the grace lock with several processes. The owner is killed, killed and started again, suspended past its
 * session and grace, cut off, or stopped regularly while it uses the lock. In each round, no two processes may believe that they
 * own the lock, exactly the right process must get the lock next, and that process must receive the interrupted use. By default
 * each fault has one round with two processes; with CARILLON_TEST_GRACE_ROUNDS=50 it has 50 rounds with two and 50 with five.
 * Prints the times from the fault to the next owner as a JSON line.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Child, Contention } from "../support/grace-lock-processes.ts";
import { postgres } from "../support/servers.ts";
import { openStage, type Stage } from "../support/store-stage.ts";

const given = process.env.CARILLON_TEST_GRACE_ROUNDS;
const rounds = Number(given ?? 1);
const sizes = given === undefined ? [2] : [2, 5];
const timeoutMs = 4_000;
const graceMs = 1_000;
/** A grace time in ms that is longer than even a slow start of a process. */
const longMs = 60_000;

const faults = ["killed", "killed and started again", "stopped for too long", "cut off", "stopped in order"] as const;
type Fault = (typeof faults)[number];

describe.each(["ZooKeeper", "PostgreSQL"] as const)("rounds of the grace lock in %s", (driver) => {
  let stage: Stage;
  let locks = 0;
  beforeAll(async () => {
    stage = await openStage(postgres());
  });
  afterAll(() => stage.close());

  /** Plays one round. @returns the time in ms from the fault until the next owner has the lock */
  async function round(fault: Fault, processes: number): Promise<number> {
    const contention = new Contention(driver, stage, `${stage.schema}-${++locks}`, timeoutMs);
    try {
      const again = fault === "killed and started again";
      const ownGraceMs = again ? longMs : graceMs;
      const proxy = await contention.proxy();
      const owner = await contention.start("owner", ownGraceMs, proxy);
      await owner.says("took");
      await contention.believes(owner);
      const names = Array.from({ length: processes - 1 }, (_, index) => `other-${index}`);
      const others = await Promise.all(names.map((name) => contention.start(name, ownGraceMs)));
      const faultAtMs = performance.now();
      if (fault === "stopped for too long") owner.signal("SIGSTOP");
      else if (fault === "cut off") proxy.hang();
      else if (fault === "stopped in order") owner.signal("SIGTERM");
      else await owner.kill();
      const candidates = again ? [await contention.start("owner", ownGraceMs)] : others;
      const next = await Promise.race(
        candidates.map(async (child): Promise<Child> => {
          await child.says("took");
          return child;
        }),
      );
      const tookMs = performance.now() - faultAtMs;
      await contention.believes(next);
      if (fault === "stopped for too long") owner.signal("SIGCONT");
      if (fault === "stopped for too long" || fault === "cut off") await owner.says("lost");
      if (fault === "stopped in order") await owner.says("closed");
      expect(next.said[1], fault).toMatch(/^took \d+ owner$/);
      for (const other of others) if (other !== next) expect(other.said, fault).toEqual(["ready"]);
      expect(contention.beliefs().map(({ pid }) => pid)).toEqual([owner.pid, next.pid]);
      expect(contention.overlaps(), fault).toEqual([]);
      return tookMs;
    } finally {
      await contention.close();
    }
  }

  it.each(sizes)(
    `${rounds} rounds of each fault, with %i processes`,
    { timeout: 120_000 * rounds },
    async (processes) => {
      const took = new Map<Fault, number[]>(faults.map((fault) => [fault, []]));
      for (let index = 0; index < rounds; index++) {
        await Promise.all(faults.map(async (fault) => took.get(fault)?.push(await round(fault, processes))));
      }
      const spans = [...took].map(([fault, all]) => [fault, [Math.min(...all), Math.max(...all)].map(Math.round)]);
      process.stdout.write(`${JSON.stringify({ driver, processes, rounds, tookMs: Object.fromEntries(spans) })}\n`);
      expect([...took.values()].map((all) => all.length)).toEqual(faults.map(() => rounds));
    },
  );
});
