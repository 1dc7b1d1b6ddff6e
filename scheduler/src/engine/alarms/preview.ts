/** Shows what would be sent to a channel, without sending it. */
import type { AlarmMessage } from "../../alarms/alarms.ts";
import { asKind, type ChannelOptions, kindOf, masked, receiverOf } from "../../settings/alarms/channels.ts";
import { formatOf } from "./formats/formats.ts";
import { contentOf, type NoticeOptions, noticeOf } from "./notices.ts";

/** An example message about failed runs, in the form that a rule would produce. */
export const sampleMessage = (nowMs: number): AlarmMessage => ({
  kind: "raised",
  rule: "exhausted",
  words: "runs failed after all their tries",
  atMs: nowMs,
  sinceMs: nowMs,
  total: 3,
  news: 3,
  subjects: [{ task: "settle", owner: "payments", count: 3, text: "no route to bank", run: 42 }],
  moreSubjects: 0,
});

export interface Preview {
  kind: ReturnType<typeof kindOf>;
  /** The receiver, without its secrets. */
  to: string;
  content: string;
}

const asText = (value: unknown): string => JSON.stringify(value, null, 2);

export function previewOf(
  channel: ChannelOptions,
  message: AlarmMessage,
  options: NoticeOptions,
  nowMs: number,
): Preview {
  const notice = noticeOf("carillon-alarm-preview", message, options);
  const kind = kindOf(channel);
  const content = asKind(channel, "mail")
    ? `${notice.subject}\n\n${notice.text}`
    : kind === "webhook" || kind === "command"
      ? asText(contentOf(notice))
      : // The body for a service may contain the service's key.
        masked(asText(formatOf(channel).sending(notice, nowMs).body), channel);
  return { kind, to: receiverOf(channel), content };
}
