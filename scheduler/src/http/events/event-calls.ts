import type { eventRoutes } from "../../api/contract/events.ts";
import { iso, isoTime } from "../../api/run-json.ts";
import { type EventFeedOptions, feedOf } from "../../store/event-feed.ts";
import { cursorOf, type EventPlace, eventTypes, placeOfCursor, type StoredEvent } from "../../store/event-store.ts";
import type { Some } from "../call.ts";

export function eventCalls(options: EventFeedOptions): Some<keyof typeof eventRoutes> {
  const feed = feedOf(options);
  return {
    async followRunEvents({ type: types = [...eventTypes], task, namespace, after }, { reach, signal, lastEventId }) {
      if (task !== undefined) reach.check(task);
      const cursor = lastEventId ?? after;
      const filter = { types, task, namespace, has: (name: string) => reach.has(name) };
      const from = await feed.open(filter, cursor === undefined ? null : placeOfCursor(cursor));
      return told(from, feed.follow(filter, from, signal));
    },
  };
}

async function* told(from: EventPlace, events: AsyncIterable<StoredEvent>) {
  yield { data: { type: "listening" as const }, id: cursorOf(from) };
  for await (const { xid: _, place, runId: run, atMs, slotMs, ...event } of events)
    yield { data: { ...event, run, at: isoTime(atMs), slot: iso(slotMs) }, id: cursorOf(place) };
}
