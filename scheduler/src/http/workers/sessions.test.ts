import { expect, it } from "vitest";
import { VirtualClock } from "../../../test/support/virtual-clock.ts";
import { silentLog } from "../../base/log.ts";
import type { ClaimedRun } from "../../run/claim-store.ts";
import type { Store } from "../../store/store.ts";
import { StoreClock } from "../../store/store-clock.ts";
import { Attached, Sessions } from "./sessions.ts";

const claim = (fence: number, claimedMs?: number) =>
  ({ runId: fence, fence, taskId: 1, attempt: 1, linked: false, dueMs: 0, claimedMs }) as ClaimedRun;
const row = { sessionId: 1, keyId: 1, groups: [], timeoutMs: 10_000, draining: false, ended: false };

it("a claim that a server reads from the store keeps the time when it was made, below which no start is cut off", async () => {
  const clock = new VirtualClock(60_000);
  const store = {
    workers: { attach: async () => row, directed: async () => [] },
    claims: { heldBy: async () => [claim(7, 1_000)] },
  } as unknown as Store;
  const onDirected = () => undefined;
  const sessions = new Sessions({ store, clock, storeClock: new StoreClock(clock), log: silentLog, onDirected });
  const session = await sessions.get(1, 1);
  session.learn([claim(7, 1_000), claim(8, 2_000)], 60_000);
  const claimedMs = (fence: number) => session.known({ runId: fence, fence })?.claimedMs;
  expect([claimedMs(7), claimedMs(8)]).toEqual([1_000, 2_000]);
  sessions.close();
});

it("a claim that this server has just made has this moment", () => {
  const session = new Attached(row as never, []);
  session.hold(claim(7), 60_000);
  expect(session.known({ runId: 7, fence: 7 })?.claimedMs).toBe(60_000);
});
