import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { VirtualClock } from "../../../test/support/virtual-clock.ts";
import { silentLog } from "../../base/log.ts";
import type { ClaimedRun } from "../../run/claim-store.ts";
import type { Store } from "../../store/store.ts";
import { StoreClock } from "../../store/store-clock.ts";
import { Attached, Sessions } from "./sessions.ts";
import { WaitingPoll } from "./waiting-poll.ts";

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

/** Lets time pass in steps, so that pending promises settle in between. */
async function pass(clock: VirtualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 100) {
    clock.advance(100);
    await setImmediate();
  }
}

/** A server with one session, whose poll waits; `beat` answers the server's heartbeats in place of the store. */
async function waitingAt(clock: VirtualClock, beat: () => Promise<Map<number, boolean>>) {
  const store = {
    workers: { attach: async () => row, directed: async () => [], beat, heldSums: async () => new Map() },
    claims: { heldBy: async () => [] },
  } as unknown as Store;
  const options = { store, clock, storeClock: new StoreClock(clock), log: silentLog, onDirected: () => undefined };
  const sessions = new Sessions(options);
  const session = await sessions.get(1, 1);
  const poll = new WaitingPoll({ want: 1, aheadMs: 0, waitMs: 60_000 }, clock, new AbortController().signal);
  session.waiting = poll;
  let outcome: unknown = "waits";
  poll.ended.then(
    () => (outcome = "answered"),
    ({ code }) => (outcome = code),
  );
  return { sessions, session, outcome: () => outcome };
}

it("a waiting poll is refused before its session ends if the store does not answer the server's heartbeat", async () => {
  const clock = new VirtualClock(60_000);
  const { sessions, session, outcome } = await waitingAt(clock, () => new Promise(() => undefined));
  await pass(clock, 3_900);
  expect([outcome(), session.unheard]).toEqual(["waits", false]);
  await pass(clock, 200);
  // Further polls are refused as well.
  expect([outcome(), session.unheard]).toEqual(["STORE_UNREACHABLE", true]);
  sessions.close();
});

it("a waiting poll is refused at once if the store refuses the server's heartbeat, and goes on waiting if it answers", async () => {
  const clock = new VirtualClock(60_000);
  let reachable = true;
  const { sessions, session, outcome } = await waitingAt(clock, async () => {
    if (!reachable) throw new Error("the store is away");
    return new Map([[1, false]]);
  });
  await pass(clock, 20_000);
  expect(outcome()).toBe("waits");
  reachable = false;
  await pass(clock, 2_100);
  expect([outcome(), session.unheard]).toEqual(["STORE_UNREACHABLE", true]);
  reachable = true;
  await pass(clock, 2_100);
  expect(session.unheard).toBe(false);
  sessions.close();
});
