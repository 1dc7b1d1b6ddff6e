import { expect, it } from "vitest";
import { systemClock } from "../base/clock.ts";
import { silentLog } from "../base/log.ts";
import { EventFeed } from "./event-feed.ts";
import type { EventMatch, EventPlace, EventStore, StoredEvent } from "./event-store.ts";

const filter = { types: ["run.failed"] as const };
const place: EventPlace = { recovery: 0, ms: 1, seen: "1:1:", reading: null, floorMs: 0 };

/** A fake store in which each event is recorded by its own transaction. */
class Recorded {
  readonly runs: string[] = [];
  readonly read: { from: string; tasks: readonly string[] | null }[] = [];

  readonly events = {
    want: async () => ({ place: { ...place, seen: this.#now() }, whole: true }),
    read: async (after: EventPlace, { tasks }: EventMatch, limit: number) => {
      this.read.push({ from: after.seen, tasks });
      const snapshot = after.reading?.snapshot ?? this.#now();
      const [end, begin] = [snapshot, after.seen].map((text) => Number(text.split(":")[1])) as [number, number];
      const first = Math.max(begin, Number(after.reading?.xid ?? 0) + 1);
      const events = this.runs.slice(first - 1, Math.min(end - 1, first - 1 + limit)).map((task, i): StoredEvent => {
        const xid = String(first + i);
        const at = { ...after, reading: { snapshot, ms: 1, xid, id: xid } };
        const nothing = { slotMs: null, key: null, result: null, error: null, group: null, labels: null, told: null };
        return { ...nothing, attempt: 1, atMs: 1, type: "run.failed", runId: first + i, task, xid, place: at };
      });
      const whole = events.length < limit;
      return { events, whole, place: whole ? { ...place, seen: snapshot } : (events.at(-1) as StoredEvent).place };
    },
  } as unknown as EventStore;

  #now = () => `${this.runs.length + 1}:${this.runs.length + 1}:`;

  add(count: number, task = "a"): void {
    for (let i = 0; i < count; i++) this.runs.push(task);
  }
}

function feedOn(recorded: Recorded) {
  return new EventFeed({ events: recorded.events, clock: systemClock, now: () => 1, log: silentLog });
}

async function take(events: AsyncGenerator<StoredEvent>, count: number): Promise<number[]> {
  const runs: number[] = [];
  while (runs.length < count) runs.push(((await events.next()).value as StoredEvent).runId);
  return runs;
}
const from = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i);

it("all followers share the same reads, and each gets its own events from its own position", async () => {
  const [recorded, over] = [new Recorded(), new AbortController()];
  recorded.add(3);
  const feed = feedOn(recorded);
  const old = feed.follow(filter, place, over.signal);
  expect(await take(old, 3)).toEqual([1, 2, 3]);
  const fresh = feed.follow(filter, await feed.open(filter, null), over.signal);
  const ofB = feed.follow({ ...filter, task: "b" }, await feed.open(filter, null), over.signal);
  const [next, first] = [take(old, 4), take(fresh, 4)];
  const own = take(ofB, 1);
  recorded.add(3);
  recorded.add(1, "b");
  expect([await next, await first, await own]).toEqual([from(4, 4), from(4, 4), [7]]);
  over.abort();
});

it("a slow follower reads on its own from its last event, and later shares reads again", async () => {
  const [recorded, over] = [new Recorded(), new AbortController()];
  const feed = feedOn(recorded);
  const [slow, quick] = [feed.follow(filter, place, over.signal), feed.follow(filter, place, over.signal)];
  const [one, other] = [take(slow, 1), take(quick, 1)];
  // Both followers share reads once the store has got four reads.
  while (recorded.read.length < 4) await new Promise((resolve) => setTimeout(resolve, 10));
  recorded.add(1);
  expect([await one, await other]).toEqual([[1], [1]]);
  recorded.add(2_600);
  expect(await take(quick, 2_600)).toEqual(from(2, 2_600));
  expect(await take(slow, 2_600)).toEqual(from(2, 2_600));
  const [last, same] = [take(slow, 5), take(quick, 5)];
  recorded.add(5);
  expect([await last, await same]).toEqual([from(2_602, 5), from(2_602, 5)]);
  over.abort();
});

it("nothing is read without followers", async () => {
  const [recorded, over] = [new Recorded(), new AbortController()];
  const feed = feedOn(recorded);
  const follower = feed.follow(filter, place, over.signal);
  const first = take(follower, 1);
  recorded.add(1);
  await first;
  over.abort();
  expect((await follower.next()).done).toBe(true);
  const { length } = recorded.read;
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(recorded.read.length - length, "a read that was about to begin").toBeLessThanOrEqual(1);
});
