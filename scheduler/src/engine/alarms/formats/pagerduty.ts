import { severityOf } from "../../../alarms/severity.ts";
import type { Json } from "../../../base/json.ts";
import { type PagerDutyChannel, postsTo } from "../../../settings/alarms/channels.ts";
import { cut, type Format, incidentOf, type Notice } from "./format.ts";

const summaryLength = 1_024;
const detailsLength = 20_000;

const sourceOf = ({ links: [first] }: Notice): string => (first ? new URL(first.url).host : "carillon");

function event(notice: Notice): Record<string, Json> {
  const { message, title, text, links } = notice;
  const { kind, rule, total, news, atMs } = message;
  if (kind === "cleared") return { event_action: "resolve" };
  const [first] = links;
  return {
    event_action: "trigger",
    client: "Carillon",
    ...(first ? { client_url: first.url } : {}),
    links: links.map(({ title: words, url }) => ({ href: url, text: words })),
    payload: {
      summary: cut(title, summaryLength),
      source: sourceOf(notice),
      severity: severityOf(message.rule),
      timestamp: new Date(atMs).toISOString(),
      component: "carillon",
      class: rule,
      custom_details: { text: cut(text, detailsLength), total, news },
    },
  };
}

/**
 * The format for PagerDuty's Events API v2. All messages of an incident have the same key, so they form one incident there, which the
 * all-clear message resolves.
 */
export const pagerduty = (channel: PagerDutyChannel): Format => ({
  sending: (notice) => ({
    url: new URL("/v2/enqueue", postsTo(channel) ?? undefined).href,
    body: { routing_key: channel.pagerduty, dedup_key: incidentOf(notice), ...event(notice) },
  }),
});
