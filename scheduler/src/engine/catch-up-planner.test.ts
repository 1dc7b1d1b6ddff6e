import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { silentLog } from "../base/log.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { DuePlan } from "../slots/plan-store.ts";
import { StoreClock } from "../store/store-clock.ts";
import { CatchUpPlanner, type CatchUpPlannerOptions } from "./catch-up-planner.ts";

it("queries an unplannable slot ever less often, despite heartbeats that report it, and another slot at once", async () => {
  const clock = new VirtualClock(1_000_000);
  const storeClock = new StoreClock(clock);
  let slot: DuePlan = { taskId: 1, version: 1, nextSlotMs: clock.wall() };
  const looks: number[] = [];
  let tellPulse = (): void => undefined;
  const catchUpPlanner = new CatchUpPlanner({
    store: {
      plans: {
        due: async () => {
          looks.push(clock.monotonic());
          return [slot];
        },
      },
    },
    membership: { node: "a", sessionId: 1, term: () => null, trusted: () => true, refresh: () => tellPulse() },
    planner: { plan: async () => undefined, setAside: () => [], plans: false },
    clock,
    storeClock,
    log: silentLog,
    horizonMs: 15_000,
    aheadMs: 2_000,
  } as unknown as CatchUpPlannerOptions);
  tellPulse = () => catchUpPlanner.onPulse({ nextSlotMs: slot.nextSlotMs, members: [] } as unknown as Pulse);
  const pass = async (ms: number) => {
    for (let passedMs = 0; passedMs < ms; passedMs += 25) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      // Signals of other nodes also cause heartbeats, at shorter intervals than the catch-up planner's own.
      tellPulse();
      clock.advance(25);
    }
  };
  await pass(8_000);
  expect(looks.length).toBeGreaterThan(8);
  expect(looks.length).toBeLessThan(16);
  slot = { ...slot, taskId: 2 };
  await pass(1_025);
  const before = looks.length;
  slot = { ...slot, nextSlotMs: slot.nextSlotMs + 1 };
  await catchUpPlanner.run();
  await pass(100);
  expect(looks.length - before, "of another slot it looks twice at once").toBeGreaterThan(2);
  await catchUpPlanner.stop();
});

it("leaves slots to the planner of its own process while that one plans", async () => {
  const clock = new VirtualClock(1_000_000);
  const storeClock = new StoreClock(clock);
  const planner = {
    plans: true,
    planned: 0,
    plan: async () => void planner.planned++,
    setAside: () => [],
  };
  const catchUpPlanner = new CatchUpPlanner({
    store: { plans: { due: async () => [{ taskId: 1, version: 1, nextSlotMs: clock.wall() }] } },
    membership: { node: "a", sessionId: 1, term: () => 1, trusted: () => true, refresh: () => undefined },
    planner,
    clock,
    storeClock,
    log: silentLog,
    horizonMs: 15_000,
    aheadMs: 2_000,
  } as unknown as CatchUpPlannerOptions);
  await catchUpPlanner.run();
  expect(planner.planned).toBe(0);
  planner.plans = false;
  clock.advance(250);
  while (planner.planned === 0) await new Promise(setImmediate);
  await catchUpPlanner.stop();
});
