import { postsTo, type TelegramChannel } from "../../../settings/alarms/channels.ts";
import { type Answered, cut, type Format, objectOf, type Refusal } from "./format.ts";

const messageLength = 4_096;
const titleLength = 300;

/** Also a request that was refused is answered with JSON that says why and, if there were too many, how long to wait. */
function refusal({ json, text }: Answered): Refusal | null {
  const { ok, description, parameters } = objectOf(json);
  if (ok === true) return null;
  const seconds = Number(objectOf(parameters).retry_after);
  return { why: String(description ?? text), afterMs: seconds > 0 ? seconds * 1_000 : undefined };
}

/** A bot that sends to a chat. The text is plain: only its title is marked, by its place. */
export const telegram = (channel: TelegramChannel): Format => ({
  sending({ title, text, links }) {
    const shown = cut(title, titleLength);
    // Without the dot the token's colon would end a scheme.
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
