import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import type { Membership } from "../coordination.ts";
import { silentLog } from "../log.ts";
import type { Store } from "../store.ts";
import { StoreClock } from "../store-clock.ts";
import { Janitor } from "./janitor.ts";

it("folds counters every minute while runs end, and looks less and less often where none does", async () => {
  const clock = new VirtualClock(1_000_000);
  const left = [50_000, 7];
  const folds: number[] = [];
  const store = {
    history: { rotate: async () => ({ created: [], dropped: [] }) },
    sessions: { sweep: async () => undefined },
    access: { sweep: async () => undefined },
    tasks: {
      takeUpLeft: async () => 0,
      foldCounters: async () => {
        folds.push(clock.monotonic() / 60_000);
        return left.shift() ?? 0;
      },
    },
  } as unknown as Store;
  let term: number | null = 1;
  const membership = { term: () => term } as Membership;
  const janitor = new Janitor({
    store,
    membership,
    clock,
    storeClock: new StoreClock(clock),
    log: silentLog,
    keepMs: 1,
  });
  const began = clock.monotonic() / 60_000;
  const minutes = async (count: number) => {
    folds.length = 0;
    for (let minute = 0; minute < count; minute++) {
      clock.advance(60_000);
      janitor.onPulse();
      // Every promise of a round is settled by then: none of them waits for more than another of them.
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    return folds.map((at) => Math.round(at - began));
  };
  expect(await minutes(12), "what fills a statement is asked for more at once").toEqual([1, 1, 2, 4, 8, 12]);
  left.push(3);
  expect(await minutes(6)).toEqual([16, 17]);
  term = null;
  expect(await minutes(10), "it is the leader's work").toEqual([]);
});
