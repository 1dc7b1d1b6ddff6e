import { postsTo, type TelegramChannel } from "../../../settings/alarms/channels.ts";
import { type Answered, cut, type Format, objectOf, type Refusal } from "./format.ts";

const messageLength = 4_096;
const titleLength = 300;

/** Telegram also answers refused requests with JSON, which contains the reason and, after too many requests, the time to wait. */
function refusal({ json, text }: Answered): Refusal | null {
  const { ok, description, parameters } = objectOf(json);
  if (ok === true) return null;
  const seconds = Number(objectOf(parameters).retry_after);
  return { why: String(description ?? text), afterMs: seconds > 0 ? seconds * 1_000 : undefined };
}

/** The format for a Telegram bot that sends to a chat. The text is plain; an entity marks the title, at its start, as bold. */
export const telegram = (channel: TelegramChannel): Format => ({
  sending({ title, text, links }) {
    const shown = cut(title, titleLength);
    // The path begins with "./", because otherwise the colon in the token would be read as the end of a URL scheme.
    return {
      url: new URL(`./bot${channel.telegram}/sendMessage`, `${String(postsTo(channel)).replace(/\/$/, "")}/`).href,
      body: {
        chat_id: channel.chat,
        ...(channel.thread === undefined ? {} : { message_thread_id: channel.thread }),
        text: cut(`${shown}\n\n${text}`, messageLength),
        entities: [{ type: "bold", offset: 0, length: shown.length }],
        link_preview_options: { is_disabled: true },
        ...(links.length === 0
          ? {}
          : { reply_markup: { inline_keyboard: links.map((link) => [{ text: link.title, url: link.url }]) } }),
      },
    };
  },
  refusal,
});
