/** Sends events of runs, slots and changes, and rows of the audit log to the receivers in the option `webhooks`, as CloudEvents 1.0. */
import { isoTime } from "../../api/run-json.ts";
import { type Clock, limitedTo } from "../../base/clock.ts";
import { eventPoster, patienceMs } from "../../executors/http/event-poster.ts";
import type { EventWebhookOptions } from "../../settings/event-webhooks.ts";
import { placeOfCursor, runEventTypes } from "../../store/event-store.ts";
import type { Store } from "../../store/store.ts";
import type { AnyEvent } from "./event.ts";
import type { Events } from "./events.ts";

/**
 * Returns the event's id, which is the same each time the event is sent. An attempt of a run has at most one event of each type, and so has
 * an entry of the audit log. A slot may have several, for example if it is planned again after an edit, so the stored event's number is
 * appended.
 */
function idOf(event: AnyEvent): string {
  if ("attempt" in event) return `${event.runId}-${event.attempt}-${event.type}`;
  if ("entry" in event) return `change-${event.entry}-${event.type}`;
  return `${event.task}-${event.slotMs}-${event.untilMs}-${event.type}-${placeOfCursor(event.cursor).reading?.id}`;
}

function dataOf(event: AnyEvent) {
  if ("attempt" in event)
    return {
      run: event.runId,
      task: event.task,
      attempt: event.attempt,
      slot: event.slotMs === null ? null : isoTime(event.slotMs),
      key: event.key,
      ...(event.type === "run.succeeded" ? { result: event.result } : { error: event.error }),
    };
  if ("entry" in event) {
    const { named, act, by, why, before, after, entry } = event;
    return { named, act, by, why, before, after, entry };
  }
  const { task, slotMs, untilMs, slots, runId: run, reason } = event;
  return { task, slot: isoTime(slotMs), until: isoTime(untilMs), slots, run, reason };
}

export const cloudEvent = (event: AnyEvent, source: string) => ({
  specversion: "1.0",
  id: idOf(event),
  source,
  type: `carillon.${event.type}`,
  subject: "entry" in event ? event.named : event.task,
  time: isoTime(event.atMs),
  datacontenttype: "application/json",
  data: dataOf(event),
});

/**
 * Subscribes each webhook as a named consumer, so that one process of the cluster at a time posts its events and the store holds its
 * position.
 */
export async function sendEvents(
  webhooks: Readonly<Record<string, EventWebhookOptions>>,
  { events, clock, store }: { events: Pick<Events, "on" | "sendAudit">; clock: Clock; store: Store },
): Promise<void> {
  const all = Object.entries(webhooks);
  if (all.length === 0) return;
  const { clusterId } = await store.sessions.cluster();
  const source = `/carillon/${clusterId}`;
  for (const [name, webhook] of all) {
    if (webhook.audit) {
      const { receiverOf } = await import("./audit-receivers.ts");
      await events.sendAudit(`audit/${name}`, receiverOf(webhook, source, clock));
      continue;
    }
    const { types = runEventTypes, task, namespace, group, labels } = webhook;
    const post = eventPoster(webhook, clock);
    const of = {
      ...(task === undefined ? {} : { task }),
      ...(namespace === undefined ? {} : { namespace }),
      ...(group === undefined ? {} : { group }),
      ...(labels === undefined ? {} : { labels }),
    };
    await events.on(types, { name: `webhook/${name}`, ...of }, async (event, { signal }) => {
      const content = cloudEvent(event, source);
      await limitedTo(clock, patienceMs, signal, (limited) => post(content.id, content, limited));
    });
  }
}
