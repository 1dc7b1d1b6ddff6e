import type { Thresholds } from "../alarms/alarm-store.ts";
import { type AlarmRule, alarmRules } from "../alarms/alarms.ts";
import { type Duration, parseDuration } from "../base/duration.ts";
import { CarillonError } from "../base/errors.ts";
import { meant } from "../base/nearest.ts";

export interface WebhookChannel {
  /** The URL to which messages are posted as JSON. */
  webhook: string;
  /** The secret that signs the messages. */
  secret?: string;
  /** Private and local addresses that the URL may resolve to; its own host needs no entry. */
  allow?: string[];
}

export interface MailChannel {
  /** The mail server, as smtp://user:password@host:587 or smtps://… */
  smtp: string;
  /** Send no password before STARTTLS; default true if `smtp` contains a password and leads to another machine. */
  requireTls?: boolean;
  from: string;
  to: string | string[];
}

export type ChannelOptions = WebhookChannel | MailChannel;

export interface AlarmOptions {
  /** The channels by name; every node of a cluster must be given the same ones. */
  channels: Record<string, ChannelOptions>;
  /** The channels of each rule's messages; default: every rule to every channel. [] turns a rule off. */
  rules?: Partial<Record<AlarmRule, string[]>>;
  /** A first attempt that starts later than this is late; default 10 s. */
  late?: Duration;
  /** Raised when a due run is unclaimed for this long; default 1 min. */
  overdue?: Duration;
  /** Raised when a slot that is due is still not planned after this; default 1 min. */
  unfired?: Duration;
  /** Raised when a claimed run has not started, is past its timeout, or has lost its worker for this long; default 1 min. */
  stuck?: Duration;
  /** Raised when the cluster has no leader for this long; default 30 s. */
  leaderless?: Duration;
  /** The shortest time between two messages of one rule, and how long nothing may be wrong before "cleared" is sent; default 1 min. */
  summary?: Duration;
}

export interface AlarmSettings extends Thresholds {
  channels: Record<string, ChannelOptions>;
  rules: Record<AlarmRule, string[]>;
}

const names = ["channels", "rules", "late", "overdue", "unfired", "stuck", "leaderless", "summary"];

/** @throws OPTION_INVALID, DURATION_INVALID */
export function alarmSettings(options: AlarmOptions): AlarmSettings {
  if (typeof options !== "object" || options === null) throw wrong("alarms must be an object");
  const stranger = Object.keys(options).find((name) => !names.includes(name));
  if (stranger !== undefined)
    throw wrong(`alarms has no ${JSON.stringify(stranger)}${meant(stranger, names)}`, `It has ${names.join(", ")}.`);
  const channels = Object.entries(options.channels ?? {});
  if (channels.length === 0)
    throw wrong("alarms.channels names none", 'Such as channels: { ops: { webhook: "https://…" } }.');
  for (const [name, channel] of channels) checkChannel(name, channel);
  const known = channels.map(([name]) => name);
  for (const [rule, to] of Object.entries(options.rules ?? {})) {
    if (!alarmRules.includes(rule as AlarmRule))
      throw wrong(
        `alarms.rules has no ${JSON.stringify(rule)}${meant(rule, alarmRules)}`,
        `They are ${alarmRules.join(", ")}.`,
      );
    const unknown = Array.isArray(to) ? to.find((name) => !known.includes(name)) : rule;
    if (unknown !== undefined) throw wrong(`alarms.rules.${rule} must list channels`, `They are ${known.join(", ")}.`);
  }
  return { ...spansOf(options), channels: Object.fromEntries(channels), rules: channelsByRule(options.rules, known) };
}

/** The settings of a process without alarms of its own: it evaluates the stored rules, if it leads. */
export const noAlarms = (): AlarmSettings => ({ ...spansOf({}), channels: {}, rules: channelsByRule({}, []) });

const channelsByRule = (given: AlarmOptions["rules"], usual: string[]) =>
  Object.fromEntries(alarmRules.map((rule) => [rule, given?.[rule] ?? usual])) as Record<AlarmRule, string[]>;

function spansOf(options: Omit<AlarmOptions, "channels">): Omit<AlarmSettings, "channels" | "rules"> {
  const duration = (name: "late" | "overdue" | "unfired" | "stuck" | "leaderless" | "summary", usual: string) =>
    parseDuration(options[name] ?? usual, `alarms.${name}`, 100);
  return {
    lateMs: duration("late", "10s"),
    overdueMs: duration("overdue", "1m"),
    unfiredMs: duration("unfired", "1m"),
    stuckMs: duration("stuck", "1m"),
    leaderlessMs: duration("leaderless", "30s"),
    summaryMs: duration("summary", "1m"),
  };
}

function checkChannel(name: string, channel: ChannelOptions): void {
  const where = `alarms.channels.${name}`;
  if (!/^[\p{L}\p{N}][\p{L}\p{N}._-]{0,49}$/u.test(name)) throw wrong(`${where}: a channel cannot be called so`);
  if (typeof channel !== "object" || channel === null) throw wrong(`${where} must be an object`);
  if ("webhook" in channel) {
    const { webhook, secret, allow = [] } = channel;
    if (typeof webhook !== "string" || !URL.canParse(webhook) || !/^https?:$/.test(new URL(webhook).protocol))
      throw wrong(`${where}.webhook must be an http:// or https:// URL`);
    if (secret !== undefined && (typeof secret !== "string" || secret === ""))
      throw wrong(`${where}.secret must be a text`);
    if (!Array.isArray(allow)) throw wrong(`${where}.allow must be a list`, 'Such as ["10.1.0.0/16"].');
    const { username, password } = new URL(webhook);
    if (username !== "" || password !== "")
      throw wrong(`${where}.webhook must hold no user or password`, "Put a key into its path, or use `secret`.");
    return;
  }
  if (!("smtp" in channel)) throw wrong(`${where} has neither webhook nor smtp`);
  const { smtp, from, to, requireTls = true } = channel;
  if (typeof requireTls !== "boolean") throw wrong(`${where}.requireTls must be true or false`);
  if (typeof smtp !== "string" || !URL.canParse(smtp) || !/^smtps?:$/.test(new URL(smtp).protocol))
    throw wrong(`${where}.smtp must be an smtp:// or smtps:// URL`);
  if (typeof from !== "string" || !from.includes("@")) throw wrong(`${where}.from must be an address`);
  const addresses = typeof to === "string" ? [to] : to;
  if (
    !Array.isArray(addresses) ||
    addresses.length === 0 ||
    !Array.from(addresses).every((one) => typeof one === "string" && one.includes("@"))
  )
    throw wrong(`${where}.to must be one address or more`);
}

const wrong = (what: string, hint = "See docs/alarms.md.") => new CarillonError("OPTION_INVALID", what, { hint });
