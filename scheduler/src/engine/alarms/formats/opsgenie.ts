import { severityOf } from "../../../alarms/severity.ts";
import { type OpsgenieChannel, postsTo } from "../../../settings/alarms/channels.ts";
import { cut, type Format, incidentOf } from "./format.ts";

const messageLength = 130;
const descriptionLength = 15_000;
const noteLength = 25_000;

const priorities = { critical: "P1", error: "P2", warning: "P3", info: "P5" } as const;

/**
 * The format for Opsgenie's Alert API. All messages of an incident have the same alias, so they form one alert there, which the all-clear
 * message closes.
 */
export const opsgenie = (channel: OpsgenieChannel): Format => ({
  sending(notice) {
    const { message, title, text, links } = notice;
    const alias = incidentOf(notice);
    const to = (path: string) => new URL(path, postsTo(channel) ?? undefined).href;
    const headers = { authorization: `GenieKey ${channel.opsgenie}` };
    if (message.kind === "cleared")
      return {
        url: to(`/v2/alerts/${encodeURIComponent(alias)}/close?identifierType=alias`),
        headers,
        body: { source: "Carillon", note: cut(text, noteLength) },
      };
    return {
      url: to("/v2/alerts"),
      headers,
      body: {
        message: cut(title, messageLength),
        alias,
        description: cut([text, ...links.map((link) => `${link.title}: ${link.url}`)].join("\n"), descriptionLength),
        source: "Carillon",
        priority: priorities[severityOf(message.rule)],
        tags: ["carillon", message.rule],
        details: { rule: message.rule, total: String(message.total), news: String(message.news) },
      },
    };
  },
});
