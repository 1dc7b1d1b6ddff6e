import { createHmac } from "node:crypto";
import type { FeishuChannel } from "../../../settings/alarms/channels.ts";
import { cut, cutBytes, type Format, refusalByCode } from "./format.ts";

/** The maximum length of a text in bytes. A request may have 20 KB, and JSON escapes some one-byte characters with two bytes. */
const textBytes = 8_000;
const titleLength = 200;
const limitedForMs = 60_000;

const colours = { raised: "red", summary: "orange", cleared: "green", test: "blue" } as const;
const plain = (content: string) => ({ tag: "plain_text", content });

/** Signs a request: the HMAC key is the time (in seconds) and the secret, and the signed message is empty, as the service requires. */
function signature(secret: string, nowMs: number) {
  const timestamp = String(Math.floor(nowMs / 1_000));
  return { timestamp, sign: createHmac("sha256", `${timestamp}\n${secret}`).update("").digest("base64") };
}

/** The format for a custom bot of a Feishu or Lark group: an interactive card. */
export const feishu = ({ feishu: url, secret }: FeishuChannel): Format => ({
  sending: ({ message: { kind }, title, text, links }, nowMs) => ({
    url,
    body: {
      ...(secret === undefined ? {} : signature(secret, nowMs)),
      msg_type: "interactive",
      card: {
        config: { wide_screen_mode: true },
        header: { title: plain(cut(title, titleLength)), template: colours[kind] },
        elements: [
          { tag: "div", text: plain(cutBytes(text, textBytes)) },
          ...(links.length === 0
            ? []
            : [
                {
                  tag: "action",
                  actions: links.map((link) => ({
                    tag: "button",
                    type: "default",
                    text: plain(link.title),
                    url: link.url,
                  })),
                },
              ]),
        ],
      },
    },
  }),
  refusal: (answer) =>
    refusalByCode(answer, { name: "code", said: "msg", limited: { 9499: limitedForMs, 11232: limitedForMs } }),
});
