/** Converts a stored message to the form for a channel: in the channel's language and time zone, with links to the console. */
import type { AlarmMessage } from "../../alarms/alarms.ts";
import { type Language, messageText, type Reader } from "../../alarms/message-text.ts";
import type { ChannelOptions } from "../../settings/alarms/channels.ts";
import type { Link, Notice } from "./formats/format.ts";

export interface NoticeOptions extends Reader {
  console: string | null;
}

/** Links with a longer URL are left out, because services refuse them. (A task's name may have 200 characters, each up to 9 in a URL.) */
const longestUrl = 1_000;

const titles: Record<Language, { alarms: string; task: string; run: (run: number) => string }> = {
  en: { alarms: "Open alarms", task: "Open the task", run: (run) => `Open run ${run}` },
  zh: { alarms: "查看告警", task: "查看任务", run: (run) => `查看执行记录 ${run}` },
};

function linksOf({ subjects }: AlarmMessage, language: Language, console: string | null): Link[] {
  if (console === null) return [];
  const words = titles[language];
  const to = (path: string) => new URL(path, console.replace(/\/*$/, "/")).href;
  const links: Link[] = [{ title: words.alarms, url: to("alarms") }];
  const [only, ...others] = subjects;
  if (only && others.length === 0) {
    if (only.task !== "") links.push({ title: words.task, url: to(`tasks/${encodeURIComponent(only.task)}`) });
    if (only.run !== null) links.push({ title: words.run(only.run), url: to(`runs/${only.run}`) });
  }
  return links.filter(({ url }) => url.length <= longestUrl);
}

/** Replaces control characters except line breaks and tabs by spaces, because some services refuse them. */
const shown = (text: string): string => text.replace(/[^\P{Cc}\n\t]/gu, " ");

export function noticeOf(id: string, message: AlarmMessage, { language, zone, console }: NoticeOptions): Notice {
  const { subject, text } = messageText(message, { language, zone });
  const line = shown(subject).replaceAll("\n", " ");
  return {
    id,
    message,
    subject,
    title: `Carillon: ${line}`,
    text: shown(text),
    links: linksOf(message, language, console),
  };
}

/** The channel's own language and zone take precedence over those of the alarm settings. */
export const noticeOptions = (
  { language, zone }: Pick<ChannelOptions, "language" | "zone">,
  usual: NoticeOptions,
): NoticeOptions => ({
  language: language ?? usual.language,
  zone: zone ?? usual.zone,
  console: usual.console,
});

/** The content that a webhook's receiver or a command gets. `links` is present only if a console is configured. */
export const contentOf = ({ message, subject, text, links }: Notice) => ({
  ...message,
  subject,
  text,
  ...(links.length === 0 ? {} : { links }),
});
