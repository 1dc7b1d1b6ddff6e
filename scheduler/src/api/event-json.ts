import type { ConsumerRecord, FailedDelivery } from "../store/event-store.ts";
import { iso, isoTime } from "./run-json.ts";

/** Returns a named consumer of events as the API shows it. */
export const consumerObject = ({ name, placeMs, untilMs, failing }: ConsumerRecord) => ({
  name,
  place: iso(placeMs),
  until: isoTime(untilMs),
  failing: failing && deliveryObject(failing),
});

const deliveryObject = ({ type, runId, task, eventMs, attempt, error, atMs, againMs }: FailedDelivery) => ({
  type,
  run: runId === 0 ? null : runId,
  task,
  time: iso(eventMs ?? null),
  attempt,
  error,
  at: isoTime(atMs),
  again: isoTime(againMs),
});
