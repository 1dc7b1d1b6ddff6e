import { expect, test } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { silentLog } from "../base/log.ts";
import { EventLoopLag } from "./event-loop-lag.ts";
import type { HeldRun } from "./running/held-run.ts";

test("event-loop lag is logged with the number of running runs and the names of a few", () => {
  const clock = new VirtualClock(0);
  const told: unknown[] = [];
  const eventLoopLag = new EventLoopLag(clock, { ...silentLog, warn: (fields: unknown) => void told.push(fields) });
  let own = 0;
  const held = Array.from(
    { length: 3_000 },
    (_, id) => ({ id, startedMs: id % 2 === 0 ? 0 : null, log: { warn: () => void own++ } }) as unknown as HeldRun,
  );
  clock.advance(999);
  eventLoopLag.look(held);
  expect(told).toEqual([]);
  clock.advance(1_000);
  eventLoopLag.look(held);
  expect(told).toEqual([{ ms: 1_000, underWay: 1_500, runs: Array.from({ length: 20 }, (_, i) => 2 * i) }]);
  expect(own, "in the log of each").toBe(1_500);
});
