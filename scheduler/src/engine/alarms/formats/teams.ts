import type { TeamsChannel } from "../../../settings/alarms/channels.ts";
import { type Answered, cut, cutBytes, type Format, type Notice, type Refusal } from "./format.ts";

/** The maximum length of the texts in bytes. A message may have 28 KB, of which JSON escapes and the rest of the card need a part. */
const textBytes = 10_000;
const titleLength = 300;

const colours = { raised: "attention", summary: "warning", cleared: "good", test: "accent" } as const;

/** Formats a line as a text run, because Teams reads a text block as Markdown. */
const line = (text: string, look: Record<string, string> = {}) => ({
  type: "RichTextBlock",
  spacing: "small",
  inlines: [{ type: "TextRun", text, ...look }],
});

function card({ message: { kind }, title, text, links }: Notice) {
  const shown = cut(title, titleLength);
  const lines = cutBytes(text, textBytes)
    .split("\n")
    .filter((one) => one.trim() !== "");
  return {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    fallbackText: shown,
    msteams: { width: "Full" },
    body: [line(shown, { weight: "bolder", size: "medium", color: colours[kind] }), ...lines.map((one) => line(one))],
    actions: links.map((link) => ({ type: "Action.OpenUrl", title: link.title, url: link.url })),
  };
}

/** Matches the answer of older connectors, which have status 200 even if Teams refused the message. */
const refused = /^Webhook message delivery failed/i;

/** The format for a Teams workflow with a webhook trigger: an Adaptive Card. */
export const teams = ({ teams: url }: TeamsChannel): Format => ({
  sending: (notice) => ({
    url,
    body: {
      type: "message",
      attachments: [
        { contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content: card(notice) },
      ],
    },
  }),
  refusal: ({ text }: Answered): Refusal | null => (refused.test(text) ? { why: text } : null),
});
