import type { WecomChannel } from "../../../settings/alarms/channels.ts";
import { cut, cutBytes, type Format, harmless, refusalByCode } from "./format.ts";

const contentBytes = 4_096;
const titleLength = 200;
/** The pause in ms after too many messages: WeCom lets a robot send 20 messages a minute. */
const limitedForMs = 60_000;

/** The format for a robot of a WeCom group: Markdown with links, because a card with buttons would have room for only a few words. */
export const wecom = ({ wecom: url }: WecomChannel): Format => ({
  sending({ title, text, links }) {
    const end = links.map((link) => `\n[${link.title}](${link.url})`).join("");
    const shown = harmless(`### ${cut(title, titleLength)}\n${text}`);
    return {
      url,
      body: {
        msgtype: "markdown",
        markdown: { content: cutBytes(shown, contentBytes - Buffer.byteLength(end)) + end },
      },
    };
  },
  refusal: (answer) => refusalByCode(answer, { name: "errcode", said: "errmsg", limited: { 45009: limitedForMs } }),
});
