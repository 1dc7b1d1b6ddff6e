import type { eventRoutes } from "../../api/contract/events.ts";
import { iso, isoTime } from "../../api/run-json.ts";
import { type EventFeedOptions, feedOf } from "../../store/event-feed.ts";
import {
  type ConsumerRecord,
  cursorOf,
  type EventPlace,
  eventTypes,
  type FailedDelivery,
  placeOfCursor,
  type StoredEvent,
} from "../../store/event-store.ts";
import type { Some } from "../call.ts";
import { changeOf } from "../calls/changes.ts";

export function eventCalls(options: EventFeedOptions): Some<keyof typeof eventRoutes> {
  const feed = feedOf(options);
  const { events } = options;
  return {
    listEventConsumers: async () => ({ consumers: (await events.consumers()).map(asConsumer) }),
    redeliverEvents: async ({ consumer, since, reason }, call) =>
      asConsumer(await events.restart(consumer, Date.parse(since), changeOf(call, reason))),
    async followRunEvents({ type: types = [...eventTypes], task, namespace, after }, { reach, signal, lastEventId }) {
      if (task !== undefined) reach.check(task);
      const cursor = lastEventId ?? after;
      const filter = { types, task, namespace, has: (name: string) => reach.has(name) };
      const from = await feed.open(filter, cursor === undefined ? null : placeOfCursor(cursor));
      return told(from, feed.follow(filter, from, signal));
    },
  };
}

const asConsumer = ({ name, placeMs, untilMs, failing }: ConsumerRecord) => ({
  name,
  place: iso(placeMs),
  until: isoTime(untilMs),
  failing: failing && asDelivery(failing),
});

const asDelivery = ({ runId: run, atMs, againMs, ...rest }: FailedDelivery) => ({
  ...rest,
  run,
  at: isoTime(atMs),
  again: isoTime(againMs),
});

async function* told(from: EventPlace, events: AsyncIterable<StoredEvent>) {
  yield { data: { type: "listening" as const }, id: cursorOf(from) };
  for await (const { xid: _, place, runId: run, atMs, slotMs, ...event } of events)
    yield { data: { ...event, run, at: isoTime(atMs), slot: iso(slotMs) }, id: cursorOf(place) };
}
