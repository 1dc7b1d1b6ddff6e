import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { silentLog } from "../base/log.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { DuePlan } from "../slots/plan-store.ts";
import { StoreClock } from "../store/store-clock.ts";
import { Rescuer, type RescuerOptions } from "./rescuer.ts";

it("queries an unplannable slot ever less often, despite heartbeats that report it, and another slot at once", async () => {
  const clock = new VirtualClock(1_000_000);
  const storeClock = new StoreClock(clock);
  let slot: DuePlan = { taskId: 1, version: 1, nextSlotMs: clock.wall() };
  const looks: number[] = [];
  let tellPulse = (): void => undefined;
  const rescuer = new Rescuer({
    store: {
      plans: {
        due: async () => {
          looks.push(clock.monotonic());
          return [slot];
        },
      },
    },
    membership: { node: "a", sessionId: 1, term: () => null, trusted: () => true, refresh: () => tellPulse() },
    planner: { plan: async () => undefined, setAside: () => [] },
    clock,
    storeClock,
    log: silentLog,
    horizonMs: 15_000,
    aheadMs: 2_000,
  } as unknown as RescuerOptions);
  tellPulse = () => rescuer.onPulse({ nextSlotMs: slot.nextSlotMs, members: [] } as unknown as Pulse);
  const pass = async (ms: number) => {
    for (let passedMs = 0; passedMs < ms; passedMs += 25) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      // Signals of other nodes also cause heartbeats, at shorter intervals than the rescuer's own.
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
  await rescuer.run();
  await pass(100);
  expect(looks.length - before, "of another slot it looks twice at once").toBeGreaterThan(2);
  await rescuer.stop();
});
