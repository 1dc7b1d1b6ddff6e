import type { ChainRow } from "../../access/audit-chain.ts";
import { type Clock, limitedTo } from "../../base/clock.ts";
import { eventPoster, patienceMs } from "../../executors/http/event-poster.ts";
import { syslogSender } from "../../executors/syslog/syslog.ts";
import { type EventWebhookOptions, isSyslog } from "../../settings/event-webhooks.ts";
import { auditEvent, rowsAbout, type TakeRows } from "./audit-stream.ts";

const rowsPerConnection = 100;
/** The largest text of a message over UDP, in bytes: a datagram has at most 65,507, some of them for the header. */
const datagramText = 65_000;

/** @param source the cluster, as the CloudEvents name it */
export function receiverOf(webhook: EventWebhookOptions, source: string, clock: Clock): TakeRows {
  const limited = (signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>) =>
    limitedTo(clock, patienceMs, signal, work);
  const wants = rowsAbout(webhook.audit || true);
  if (isSyslog(webhook.url)) {
    const send = syslogSender(webhook.url, clock);
    const longest = webhook.url.startsWith("syslog+udp:") ? datagramText : Number.POSITIVE_INFINITY;
    const messages = (rows: readonly ChainRow[]) => rows.map((row) => messageOf(row, source, longest));
    const take = (rows: readonly ChainRow[], signal: AbortSignal) =>
      limited(signal, (over) => send(messages(rows), over));
    return { wants, most: rowsPerConnection, take };
  }
  const post = eventPoster(webhook, clock);
  return {
    wants,
    most: 1,
    async take(rows, signal) {
      for (const event of rows.map((row) => auditEvent(row, source)))
        await limited(signal, (over) => post(event.id, event, over));
    },
  };
}

/** Returns a row as a syslog message. The values before and after the change are left out if the message would be longer than `longest`. */
function messageOf(row: ChainRow, source: string, longest: number) {
  const event = auditEvent(row, source);
  const whole = JSON.stringify(event);
  const { before: _, after: __, ...entry } = event.data.entry;
  const isCut = Buffer.byteLength(whole) > longest;
  const text = isCut ? JSON.stringify({ ...event, data: { ...event.data, entry, cut: true } }) : whole;
  return { atMs: Date.parse(event.time), kind: "audit", text };
}
