import type { eventRoutes } from "../../api/contract/events.ts";
import { consumerObject, iso, isoTime } from "../../api/run-json.ts";
import { type EventFeedOptions, feedOf } from "../../store/event-feed.ts";
import {
  cursorOf,
  type EventPlace,
  placeOfCursor,
  type RunEventType,
  runEventTypes,
  type StoredEvent,
} from "../../store/event-store.ts";
import type { Some } from "../call.ts";
import { changeOf } from "../calls/changes.ts";

export function eventCalls(options: EventFeedOptions): Some<keyof typeof eventRoutes> {
  const feed = feedOf(options);
  const { events } = options;
  return {
    listEventConsumers: async () => ({ consumers: (await events.consumers()).map(consumerObject) }),
    async redeliverEvents({ consumer, since, reason }, call) {
      const fromMs = since === undefined ? null : Date.parse(since);
      return consumerObject(await events.restart(consumer, fromMs, changeOf(call, reason)));
    },
    async followRunEvents(
      { type: types = [...runEventTypes], task, namespace, after },
      { reach, signal, lastEventId },
    ) {
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
  for await (const { place, type, runId: run, task, attempt, atMs, slotMs, key, result, error } of events) {
    const of = { type: type as RunEventType, run, task: task as string, attempt };
    yield { data: { ...of, at: isoTime(atMs), slot: iso(slotMs), key, result, error }, id: cursorOf(place) };
  }
}
