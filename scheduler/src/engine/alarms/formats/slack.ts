import type { SlackChannel } from "../../../settings/alarms/channels.ts";
import { cut, type Format } from "./format.ts";

const headerLength = 150;
const sectionLength = 3_000;
const buttonLength = 75;
const fallbackLength = 1_000;

/** Escapes the fallback text, which is markup: these three characters delimit links, mentions and entities there. */
const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** The format for a Slack incoming webhook, with Block Kit. The blocks are plain text, in which Slack reads no mentions and links. */
export const slack = ({ slack: url }: SlackChannel): Format => ({
  sending: ({ title, text, links }) => ({
    url,
    body: {
      text: escaped(cut(title, fallbackLength)),
      blocks: [
        { type: "header", text: { type: "plain_text", text: cut(title, headerLength), emoji: false } },
        { type: "section", text: { type: "plain_text", text: cut(text, sectionLength), emoji: false } },
        ...(links.length === 0
          ? []
          : [
              {
                type: "actions",
                elements: links.map((link, index) => ({
                  type: "button",
                  action_id: `open-${index}`,
                  text: { type: "plain_text", text: cut(link.title, buttonLength), emoji: false },
                  url: link.url,
                })),
              },
            ]),
      ],
    },
  }),
});
