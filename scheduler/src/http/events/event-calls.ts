import type { eventRoutes } from "../../api/contract/events.ts";
import { iso, isoTime } from "../../api/run-json.ts";
import { CarillonError } from "../../base/errors.ts";
import { type EventFeedOptions, feedOf } from "../../store/event-feed.ts";
import {
  type ConsumerRecord,
  cursorOf,
  type EventPlace,
  type FailedDelivery,
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
    listEventConsumers: async () => ({ consumers: (await events.consumers()).map(asConsumer) }),
    async redeliverEvents({ consumer, since, reason }, call) {
      const sinceMs = Date.parse(since);
      if (sinceMs > call.nowMs) throw sinceLater(call.nowMs);
      return asConsumer(await events.restart(consumer, sinceMs, changeOf(call, reason)));
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

const sinceLater = (nowMs: number) =>
  new CarillonError("OPTION_INVALID", "since is in the future: events that are still to come would be left out", {
    path: "since",
    hint: `It is ${isoTime(nowMs)} by the store's clock. Give that time, or an earlier one.`,
  });

const asConsumer = ({ name, placeMs, untilMs, failing }: ConsumerRecord) => ({
  name,
  place: iso(placeMs),
  until: isoTime(untilMs),
  failing: failing && asDelivery(failing),
});

const asDelivery = ({ runId, atMs, againMs, ...rest }: FailedDelivery) => ({
  ...rest,
  run: runId === 0 ? null : runId,
  at: isoTime(atMs),
  again: isoTime(againMs),
});

async function* told(from: EventPlace, events: AsyncIterable<StoredEvent>) {
  yield { data: { type: "listening" as const }, id: cursorOf(from) };
  for await (const { place, type, runId: run, task, attempt, atMs, slotMs, key, result, error } of events) {
    const of = { type: type as RunEventType, run, task: task as string, attempt };
    yield { data: { ...of, at: isoTime(atMs), slot: iso(slotMs), key, result, error }, id: cursorOf(place) };
  }
}
