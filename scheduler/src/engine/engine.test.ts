import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import type { Membership } from "../coordination.ts";
import { Definitions } from "../definitions.ts";
import { silentLog } from "../log.ts";
import { seeded } from "../random.ts";
import type { Pulse, Store, TaskStore } from "../store.ts";
import { StoreClock } from "../store-clock.ts";
import { Engine } from "./engine.ts";

it("sets no timer for a pulse that comes after its end: it would keep the process from ending until the next slot", async () => {
  const clock = new VirtualClock(1_000_000);
  let asked = 0;
  const due = async () => {
    asked++;
    return [];
  };
  const store = { plans: { due, admitHeld: due } } as unknown as Store;
  let pulse: (pulse: Pulse) => void = () => undefined;
  const membership = {
    trusted: () => true,
    term: () => null,
    refresh: () => undefined,
    onLeadership: () => undefined,
    onPulse: (listener: (pulse: Pulse) => void) => {
      pulse = listener;
    },
  } as unknown as Membership;
  const timers: string[] = [];
  const engine = new Engine({
    ...{ store, membership, log: silentLog, horizonMs: 15_000, rescueGraceMs: 50, keepMs: 1 },
    definitions: new Definitions({} as TaskStore),
    storeClock: new StoreClock(clock),
    random: seeded(1),
    clock: {
      monotonic: () => clock.monotonic(),
      wall: () => clock.wall(),
      after: (ms, fire) => {
        timers.push(String(ms));
        return clock.after(ms, fire);
      },
    },
  });
  const told = {
    ...{ storeMs: clock.wall(), alive: true, leadership: { term: 1, sessionId: 1 }, led: true, members: [], ended: [] },
    ...{ nextSlotMs: clock.wall() + 86_400_000, nextHeldMs: clock.wall() + 1_000, nextReadyMs: null, gated: true },
    changes: "",
  };
  pulse(told);
  expect(timers).toHaveLength(2);
  await engine.stop();
  pulse(told);
  expect(timers).toHaveLength(2);
  expect(asked).toBe(0);
});
