/** The channels through which alarms are sent: their kinds, the options of each kind, and which options are secret. */
import { type ChannelKind, channelKindNames } from "../../alarms/channel-kinds.ts";
import { type Language, languages } from "../../alarms/message-text.ts";
import { CarillonError, within } from "../../base/errors.ts";
import { meant } from "../../base/nearest.ts";
import { zoneName } from "../../schedule/zone.ts";
import { decoded } from "../../store/store-url.ts";

interface Told {
  /** The language of the channel's messages; default: `alarms.language`. */
  language?: Language;
  /** The time zone of times in this channel's messages; default: `alarms.zone`. */
  zone?: string;
}

interface Reached extends Told {
  /** Private and local addresses to which the URL's host may resolve. A host that is itself an address needs no entry. */
  allow?: string[];
}

export interface WebhookChannel extends Reached {
  /** The URL to which messages are posted as JSON. */
  webhook: string;
  /** The secret with which the messages are signed. */
  secret?: string;
}

export interface MailChannel extends Told {
  /** The mail server's URL: smtp://user:password@host:587 or smtps://… */
  smtp: string;
  /** True: no mail is sent without STARTTLS. Default: true if `smtp` contains a password and the server is on another machine. */
  requireTls?: boolean;
  from: string;
  to: string | string[];
}

export interface SlackChannel extends Reached {
  /** The URL of an incoming webhook of a Slack app. */
  slack: string;
}

export interface TeamsChannel extends Reached {
  /** The URL of a Teams workflow that posts the requests that its webhook receives. */
  teams: string;
}

export interface DingTalkChannel extends Reached {
  /** The URL of a custom robot in a DingTalk group. */
  dingtalk: string;
  /** The robot's secret for signed requests, which begins with SEC. */
  secret?: string;
}

export interface FeishuChannel extends Reached {
  /** The URL of a custom bot in a Feishu or Lark group. */
  feishu: string;
  /** The bot's secret for signed requests. */
  secret?: string;
}

export interface WecomChannel extends Reached {
  /** The URL of a robot in a WeCom group. */
  wecom: string;
}

export interface TelegramChannel extends Reached {
  /** The bot's token. */
  telegram: string;
  /** The chat's id or @name. */
  chat: string | number;
  /** The id of a topic in the chat. */
  thread?: number;
  /** The URL of the bot API; default https://api.telegram.org. */
  url?: string;
}

export interface PagerDutyChannel extends Reached {
  /** The integration key of a PagerDuty service (Events API v2). */
  pagerduty: string;
  /** The URL of the events API; default https://events.pagerduty.com. */
  url?: string;
}

export interface OpsgenieChannel extends Reached {
  /** The key of an Opsgenie API integration. */
  opsgenie: string;
  /** The URL of the alert API; default https://api.opsgenie.com. */
  url?: string;
}

export interface CommandChannel extends Told {
  /**
   * The absolute path of a program on this machine, followed by its arguments. The program reads the message as JSON from standard input.
   */
  command: string[];
}

export interface Channels {
  webhook: WebhookChannel;
  mail: MailChannel;
  slack: SlackChannel;
  teams: TeamsChannel;
  dingtalk: DingTalkChannel;
  feishu: FeishuChannel;
  wecom: WecomChannel;
  telegram: TelegramChannel;
  pagerduty: PagerDutyChannel;
  opsgenie: OpsgenieChannel;
  command: CommandChannel;
}

export type ChannelOptions = Channels[ChannelKind];

/** Returns a description of the expected value, such as "a text"; undefined if the value is valid. */
type Check = (value: unknown) => string | undefined;

interface Kind {
  /** The option whose presence makes a channel one of this kind. */
  key: string;
  needs?: readonly string[];
  options: Readonly<Record<string, Check>>;
  /** The options whose whole value is secret. */
  secrets?: readonly string[];
  /** The option with the URL to which messages are posted. Its path or query may contain a secret. */
  posts?: string;
  /** The URL to which messages are posted if that option is absent. */
  usual?: string;
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
const text: Check = (value) => (isText(value) ? undefined : "a text");
const list: Check = (value) => (Array.isArray(value) && value.every(isText) ? undefined : "a list of texts");
const flag: Check = (value) => (typeof value === "boolean" ? undefined : "true or false");
const language: Check = (value) =>
  languages.some((one) => one === value) ? undefined : languages.map((one) => JSON.stringify(one)).join(" or ");

const isUrl = (value: unknown, protocol: RegExp): value is string =>
  typeof value === "string" && URL.canParse(value) && protocol.test(new URL(value).protocol);

/** @returns undefined if the value is a web URL without user and password; else a description of the expected value */
export const httpUrl: Check = (value) => {
  if (!isUrl(value, /^https?:$/)) return "an http:// or https:// URL";
  const { username, password } = new URL(value);
  return username === "" && password === "" ? undefined : "a URL without a user or password";
};
const smtpUrl: Check = (value) => {
  if (!isUrl(value, /^smtps?:$/)) return "an smtp:// or smtps:// URL";
  return decoded(value) === null ? "a URL in which each % begins an escape; % itself is %25" : undefined;
};

const isAddress = (value: unknown) => typeof value === "string" && value.includes("@");
const address: Check = (value) => (isAddress(value) ? undefined : "an address");
const addresses: Check = (value) => {
  const all = typeof value === "string" ? [value] : value;
  return Array.isArray(all) && all.length > 0 && Array.from(all).every(isAddress) ? undefined : "one address or more";
};
const chat: Check = (value) =>
  Number.isSafeInteger(value) || (typeof value === "string" && /^(?:-?\d+|@\w+)$/.test(value))
    ? undefined
    : "a chat's number or @name";
const whole: Check = (value) => (Number.isSafeInteger(value) && Number(value) > 0 ? undefined : "a whole number");
const argv: Check = (value) =>
  Array.isArray(value) && Array.from(value).every((one) => typeof one === "string") && /^\/./.test(value[0] ?? "")
    ? undefined
    : "a list of texts that begins with the absolute path of a program";

const told = { language, zone: text };
const reached = { ...told, allow: list };

const channelKinds: Readonly<Record<ChannelKind, Kind>> = {
  webhook: {
    key: "webhook",
    options: { webhook: httpUrl, secret: text, ...reached },
    secrets: ["secret"],
    posts: "webhook",
  },
  mail: {
    key: "smtp",
    needs: ["from", "to"],
    options: { smtp: smtpUrl, requireTls: flag, from: address, to: addresses, ...told },
  },
  slack: { key: "slack", options: { slack: httpUrl, ...reached }, posts: "slack" },
  teams: { key: "teams", options: { teams: httpUrl, ...reached }, posts: "teams" },
  dingtalk: {
    key: "dingtalk",
    options: { dingtalk: httpUrl, secret: text, ...reached },
    secrets: ["secret"],
    posts: "dingtalk",
  },
  feishu: {
    key: "feishu",
    options: { feishu: httpUrl, secret: text, ...reached },
    secrets: ["secret"],
    posts: "feishu",
  },
  wecom: { key: "wecom", options: { wecom: httpUrl, ...reached }, posts: "wecom" },
  telegram: {
    key: "telegram",
    needs: ["chat"],
    options: { telegram: text, chat, thread: whole, url: httpUrl, ...reached },
    secrets: ["telegram"],
    posts: "url",
    usual: "https://api.telegram.org",
  },
  pagerduty: {
    key: "pagerduty",
    options: { pagerduty: text, url: httpUrl, ...reached },
    secrets: ["pagerduty"],
    posts: "url",
    usual: "https://events.pagerduty.com",
  },
  opsgenie: {
    key: "opsgenie",
    options: { opsgenie: text, url: httpUrl, ...reached },
    secrets: ["opsgenie"],
    posts: "url",
    usual: "https://api.opsgenie.com",
  },
  command: { key: "command", options: { command: argv, ...told } },
};

const keys = channelKindNames.map((kind) => channelKinds[kind].key);
const kindsIn = (channel: object): ChannelKind[] =>
  channelKindNames.filter((kind) => Object.hasOwn(channel, channelKinds[kind].key));
const optionOf = (channel: object, name: string): unknown => (channel as Record<string, unknown>)[name];

/** @param channel a channel that `checkChannel` has accepted */
export const kindOf = (channel: ChannelOptions): ChannelKind => kindsIn(channel)[0] as ChannelKind;

/** Returns the channel if it is of this kind; else undefined. */
export const asKind = <K extends ChannelKind>(channel: ChannelOptions, kind: K): Channels[K] | undefined =>
  kindOf(channel) === kind ? (channel as Channels[K]) : undefined;

/** Returns the URL to which the channel's messages are posted; null if the channel does not post. */
export function postsTo(channel: ChannelOptions): URL | null {
  const { posts, usual } = channelKinds[kindOf(channel)];
  return posts === undefined ? null : new URL(String(optionOf(channel, posts) ?? usual));
}

/**
 * Returns the texts of the channel that must not appear in messages, log lines or responses. For a mail server these are the password in
 * its URL, as written and decoded, and the base64 texts in which a client sends the password.
 */
export function secretsOf(channel: ChannelOptions): string[] {
  const { secrets = [], key, posts } = channelKinds[kindOf(channel)];
  const texts = secrets.flatMap((name) => optionOf(channel, name) ?? []).map(String);
  const mail = asKind(channel, "mail");
  if (mail) {
    const { username, password } = new URL(mail.smtp);
    if (password === "") return [];
    const [user, secret] = [username, password].map(decodeURIComponent) as [string, string];
    // AUTH LOGIN sends the password in base64, AUTH PLAIN user and password. A server may repeat them without the = at the end.
    const sent = [secret, `\0${user}\0${secret}`].map((text) =>
      Buffer.from(text).toString("base64").replace(/=+$/, ""),
    );
    return [password, secret, ...sent];
  }
  const command = asKind(channel, "command");
  // Short arguments are left out, like short paths below.
  if (command)
    return command.command
      .slice(1)
      .flatMap((argument) => [argument, argument.slice(argument.indexOf("=") + 1)])
      .filter((one) => one.length > 6);
  if (posts !== key) return texts;
  const { pathname, search } = new URL(String(optionOf(channel, key)));
  // Short paths are left out: they cannot be secrets, and redacting them would change other text.
  return [...texts, ...[`${pathname}${search}`, pathname, search.slice(1)].filter((one) => one.length > 6)];
}

/** Replaces the channel's secrets in a text by "***", because a receiver's answer may repeat what was sent to it. */
export const masked = (text: string, channel: ChannelOptions): string =>
  secretsOf(channel)
    .toSorted((a, b) => b.length - a.length)
    .reduce((left, secret) => left.replaceAll(secret, "***"), text);

/**
 * Returns the names of the options that are secret (`whole`), or that are a URL whose path or query may contain a secret
 * (`urls`), in a channel that has not been validated yet.
 */
export const secretOptions = (channel: object): { whole: string[]; urls: string[] } => {
  const kinds = kindsIn(channel).map((kind) => channelKinds[kind]);
  return {
    whole: kinds.flatMap(({ secrets = [] }) => secrets),
    urls: kinds.flatMap(({ key, posts }) => (posts === key ? [key] : [])),
  };
};

/** Returns a description of the receiver that anyone may see: without the parts of a URL or a command line that may be secret. */
export function receiverOf(channel: ChannelOptions): string {
  const mail = asKind(channel, "mail");
  if (mail) return [mail.to].flat().join(", ");
  const telegram = asKind(channel, "telegram");
  if (telegram) return `${postsTo(channel)?.host}, ${telegram.chat}`;
  return postsTo(channel)?.host ?? String(asKind(channel, "command")?.command[0]);
}

export const isSigned = (channel: ChannelOptions): boolean => "secret" in channel && channel.secret !== undefined;

/** Validates a channel. @throws OPTION_INVALID with the option's path, ZONE_UNKNOWN */
export function checkChannel(name: string, channel: object): void {
  const where = `alarms.channels.${name}`;
  if (!/^[\p{L}\p{N}][\p{L}\p{N}._-]{0,49}$/u.test(name)) throw wrong(where, "a channel cannot be called so");
  if (typeof channel !== "object" || channel === null || Array.isArray(channel))
    throw wrong(where, "must be an object");
  const found = kindsIn(channel);
  const [kind] = found;
  const names = Object.keys(channel);
  if (kind === undefined) {
    const near = names.map((one) => meant(one, keys)).find((one) => one !== "") ?? "";
    throw wrong(where, `is of no kind: it has none of ${keys.join(", ")}${near}`);
  }
  if (found.length > 1) throw wrong(where, `is of two kinds: ${found.join(" and ")}`, "Make two channels of it.");
  const { options, needs = [] } = channelKinds[kind];
  const known = Object.keys(options);
  const stranger = names.find((one) => !known.includes(one));
  if (stranger !== undefined)
    throw wrong(
      `${where}.${stranger}`,
      `is no option of a channel of the kind ${kind}${meant(stranger, known)}`,
      `Its options are ${known.join(", ")}.`,
    );
  for (const one of [...names, ...needs]) {
    const value = optionOf(channel, one);
    if (value === undefined && one !== channelKinds[kind].key && !needs.includes(one)) continue;
    const means = options[one]?.(value);
    if (means !== undefined) throw wrong(`${where}.${one}`, `must be ${means}`);
  }
  const zone = optionOf(channel, "zone");
  if (zone !== undefined) within(`${where}.zone`, () => zoneName(zone));
}

const wrong = (path: string, what: string, hint = "See docs/operate/channels.md.") =>
  new CarillonError("OPTION_INVALID", `${path} ${what}`, { hint, path });
