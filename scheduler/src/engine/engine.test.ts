import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { silentLog } from "../base/log.ts";
import { seeded } from "../base/random.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";
import { Definitions } from "../store/definitions.ts";
import type { Store } from "../store/store.ts";
import { StoreClock } from "../store/store-clock.ts";
import type { TaskStore } from "../task/task-store.ts";
import { Engine } from "./engine.ts";

function openEngine() {
  const clock = new VirtualClock(1_000_000);
  const asked = { due: 0, held: 0 };
  const store = {
    plans: {
      due: async () => {
        asked.due++;
        return [];
      },
      admitHeld: async () => {
        asked.held++;
        return null;
      },
    },
    operations: { open: async () => [] },
  } as unknown as Store;
  let tell: (pulse: Pulse) => void = () => undefined;
  const membership = {
    trusted: () => true,
    term: () => null,
    refresh: () => undefined,
    onLeadership: () => undefined,
    onPulse: (listener: (pulse: Pulse) => void) => {
      tell = listener;
    },
  } as unknown as Membership;
  const timers: string[] = [];
  const engine = new Engine({
    store,
    membership,
    log: silentLog,
    horizonMs: 15_000,
    rescueGraceMs: 50,
    keepMs: 1,
    releaseGraceMs: 60_000,
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
  return { clock, asked, engine, timers, pulse: (pulse: Pulse) => tell(pulse) };
}

it("sets no timer for a heartbeat after its end, which would keep the process alive until the next slot", async () => {
  const { clock, asked, engine, timers, pulse } = openEngine();
  const told = {
    storeMs: clock.wall(),
    clock: { shiftMs: 0, number: 0, sinceMs: null },
    alive: true,
    leadership: { term: 1, sessionId: 1 },
    led: true,
    members: [],
    ended: [],
    nextSlotMs: clock.wall() + 86_400_000,
    nextHeldMs: clock.wall() + 1_000,
    nextReadyMs: null,
    gated: true,
    changes: "",
  };
  pulse(told);
  expect(timers).toHaveLength(2);
  await engine.stop();
  pulse(told);
  expect(timers).toHaveLength(2);
  expect(asked).toEqual({ due: 0, held: 0 });
});

it("admits runs waiting for a limit after signals may have been lost, because no heartbeat reports them", async () => {
  const { clock, asked, engine } = openEngine();
  engine.onSignal({ kind: "resync" });
  clock.advance(50);
  expect(asked.held).toBe(1);
  await engine.stop();
});
