import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import type { Reach } from "../access/access.ts";
import { silentLog } from "../base/log.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { BrowseStore } from "../store/browse-store.ts";
import type { Call } from "./call.ts";
import { LiveEvents } from "./streams.ts";

const record = (runId: number, endedMs: number) =>
  ({
    runId,
    task: "t",
    dueMs: 0,
    createdMs: 0,
    slotMs: null,
    claimedMs: 0,
    startedMs: 0,
    endedMs,
    state: "succeeded",
  }) as RunRecord;

it("a slow client misses ended runs and their number, and no other event", async () => {
  const clock = new VirtualClock(0);
  let read = 0;
  const runs = async () => {
    const runs = Array.from({ length: 500 }, (_, at) => record(read * 500 + at, clock.wall()));
    if (read === 6) runs.length = 0;
    else read++;
    return { runs };
  };
  const events = new LiveEvents({ runs } as unknown as BrowseStore, clock, () => clock.wall(), silentLog);
  const over = new AbortController();
  const reach = { has: () => true } as unknown as Reach;
  const stream = await events.follow({}, { reach, signal: over.signal } as Call);
  const follower = stream[Symbol.asyncIterator]();
  const next = async () => (await follower.next()).value.data;
  expect(await next()).toEqual({ type: "resync" });
  events.onSignal({ kind: "tasks" } as never);
  while (read < 6) {
    clock.advance(500);
    await new Promise(setImmediate);
  }
  events.onSignal({ kind: "operations" } as never);
  const types = new Map<string, number>();
  let more: unknown;
  while (!types.has("operations")) {
    const event = await next();
    types.set(event.type, (types.get(event.type) ?? 0) + 1);
    if (event.type === "more") more = event.ended;
  }
  expect(Object.fromEntries(types)).toEqual({ tasks: 1, operations: 1, ended: 1_998, more: 1 });
  expect(more).toBe(3_000 - 1_998);
  over.abort();
  await follower.return?.();
  await events.close();
});
