import { afterEach, describe, expect, it } from "vitest";
import { ownPath, sharedServer } from "../../../zookeeper/test/support/servers.ts";
import { seeded } from "../../src/base/random.ts";
import { KillRounds } from "../support/kill-rounds.ts";
import type { Seen } from "../support/programs.ts";
import { redis } from "../support/servers.ts";
import { hold, holdLateness, lateMs } from "../support/timing.ts";

const ways = [
  { by: "the store alone", coordination: () => undefined },
  { by: "ZooKeeper", coordination: () => `zookeeper://${sharedServer()}${ownPath("kills")}` },
  { by: "Redis", coordination: () => `${redis().url}?prefix=kills-${process.pid}` },
];
const rounds = 8;
/** Slots at most this many ms before and after a kill are compared. */
const nearMs = 1_000;
/**
 * The time in ms in which the claims of a dead worker are taken back with default settings: about the sum of the session timeout, a
 * heartbeat interval and the grace.
 */
const takenBackMs = 10_000;

describe.each(ways)(
  `one of two processes killed with -9, ${rounds} times, coordinated by $by`,
  ({ by, coordination }) => {
    let scene: KillRounds;
    afterEach(() => scene.close());

    it("unclaimed runs start as before the kill, and claimed ones after detection and grace", async () => {
      const random = seeded(Date.now() % 1_000_000);
      scene = new KillRounds(`kills_${process.pid}`, { rounds, tasks: 60, coordination: coordination(), random });
      await scene.play();
      const { starts, stalls, lost, killedAt, readyAt, lastVictim } = scene;
      const unclaimed = [...starts].flatMap(([key, [first]]) =>
        first && first.slot >= readyAt && !lost.has(key) && first.attempt === 1 ? [first] : [],
      );
      const near = (fromMs: number, toMs: number) => {
        const isNear = ({ slot }: Seen) =>
          [...killedAt.values()].some((killed) => slot >= killed + fromMs && slot < killed + toMs);
        return unclaimed.filter(isNear).map((seen) => lateMs(seen, stalls));
      };
      const [before, after] = [near(-nearMs, 0), near(0, nearMs)];
      // Starting and dying processes may delay the measured processes, so the bound for a single start is wide.
      holdLateness(`after a kill, ${by}`, after, before);
      const again = [...lost].flatMap(([key, nodes]) => {
        const last = starts.get(key)?.at(-1);
        const died = killedAt.get(nodes.at(-1) as string);
        return last && died && nodes.at(-1) === lastVictim ? [last.at - Math.max(died, last.slot)] : [];
      });
      expect(again.length).toBeGreaterThan(0);
      hold(`last re-run after a kill, ${by}`, {
        ms: Math.max(...again),
        controlMs: takenBackMs,
        mostMs: takenBackMs + Math.max(500, 3 * Math.max(...before)),
      });
    });
  },
);
