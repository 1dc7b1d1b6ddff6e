import { createHmac } from "node:crypto";
import type { DingTalkChannel } from "../../../settings/alarms/channels.ts";
import { cut, cutBytes, type Format, harmless, refusalByCode } from "./format.ts";

/** The maximum length of a text in bytes. A message may have 20,000 bytes, and JSON escapes some one-byte characters with two bytes. */
const textBytes = 8_000;
const titleLength = 200;
/** DingTalk blocks a robot that has sent more than 20 messages in a minute for this long, in ms. */
const limitedForMs = 600_000;

/** Adds the time and the signature that a robot with the security setting "sign" requires. @returns the URL */
function signed(url: string, secret: string, nowMs: number): string {
  const to = new URL(url);
  const timestamp = String(Math.round(nowMs));
  to.searchParams.set("timestamp", timestamp);
  to.searchParams.set("sign", createHmac("sha256", secret).update(`${timestamp}\n${secret}`).digest("base64"));
  return to.href;
}

/** The format for a custom robot of a DingTalk group. A message with links is an action card, whose links are buttons. */
export const dingtalk = ({ dingtalk: url, secret }: DingTalkChannel): Format => ({
  sending({ title, text, links }, nowMs) {
    const shown = cut(title, titleLength);
    // DingTalk's Markdown needs two spaces before a line break.
    const markdown = harmless(`### ${shown}\n${cutBytes(text, textBytes)}`).replaceAll("\n", "  \n");
    const [only] = links;
    const buttons =
      links.length === 1 && only
        ? { singleTitle: only.title, singleURL: only.url }
        : { btnOrientation: "0", btns: links.map((link) => ({ title: link.title, actionURL: link.url })) };
    return {
      url: secret === undefined ? url : signed(url, secret, nowMs),
      body: only
        ? { msgtype: "actionCard", actionCard: { title: shown, text: markdown, ...buttons } }
        : { msgtype: "markdown", markdown: { title: shown, text: markdown } },
    };
  },
  refusal: (answer) =>
    refusalByCode(answer, { name: "errcode", said: "errmsg", limited: { 130101: limitedForMs, 410100: limitedForMs } }),
});
