import type { Client } from "../../api/client.ts";
import type { Answer } from "../../api/contract.ts";
import { isoTime } from "../../api/run-json.ts";
import type { Change } from "../../base/change.ts";
import type { ConsumerRecord, EventStore } from "../../store/event-store.ts";
import type { ClusterEvents } from "../nodes/cluster.ts";
import { why } from "./calls.ts";
import { ms } from "./records.ts";

/** Named consumers of events through a store. */
export const storeEvents = (events: EventStore, change: (reason: string) => Change): ClusterEvents => ({
  list: () => events.consumers(),
  redeliver: (consumer, sinceMs, reason) => events.restart(consumer, sinceMs, change(reason)),
});

/** Converts an answer. An older server sends no `time`. */
function consumerRecord({ name, place, until, failing }: Answer<"redeliverEvents">): ConsumerRecord {
  if (failing === null) return { name, placeMs: ms(place), untilMs: Date.parse(until), failing };
  const { run, time, at, again, ...rest } = failing;
  return {
    name,
    placeMs: ms(place),
    untilMs: Date.parse(until),
    failing: {
      ...rest,
      runId: run ?? 0,
      ...(typeof time === "string" ? { eventMs: Date.parse(time) } : {}),
      atMs: Date.parse(at),
      againMs: Date.parse(again),
    },
  };
}

/** Named consumers of events through a server. */
export const serverEvents = (api: Client): ClusterEvents => ({
  list: async () => (await api.listEventConsumers()).consumers.map(consumerRecord),
  redeliver: async (consumer, sinceMs, reason) =>
    consumerRecord(
      await api.redeliverEvents({
        consumer,
        ...(sinceMs === null ? {} : { since: isoTime(sinceMs) }),
        ...why(reason),
      }),
    ),
});
