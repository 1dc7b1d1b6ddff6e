import type { Thresholds } from "../../alarms/alarm-store.ts";
import { type AlarmRule, alarmRules } from "../../alarms/alarms.ts";
import { type Language, languages, type Reader } from "../../alarms/message-text.ts";
import { type Duration, parseDuration } from "../../base/duration.ts";
import { CarillonError, within } from "../../base/errors.ts";
import { checkNames, meant } from "../../base/nearest.ts";
import { zoneName } from "../../schedule/zone.ts";
import { type ChannelOptions, checkChannel, httpUrl } from "./channels.ts";

export interface AlarmOptions {
  /** The channels by name; every node of a cluster must be given the same ones. */
  channels?: Record<string, ChannelOptions>;
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
  /** The language of the messages; default "en". */
  language?: Language;
  /** The time zone of the times in the messages; default UTC. */
  zone?: string;
  /** The URL at which people open the console: messages then have links to it. */
  console?: string;
  /** A monitor elsewhere that the leader calls while the cluster is on time. */
  ping?: PingGiven;
}

export interface PingGiven {
  /** The URL that is called by GET. */
  url: string;
  /** How often it is called; default 1 min. */
  every?: Duration;
  /** Private and local addresses that the URL may resolve to; its own host needs no entry. */
  allow?: string[];
}

export interface PingSettings {
  url: string;
  everyMs: number;
  allow: string[];
}

export interface AlarmSettings extends Thresholds, Reader {
  /** null: messages have no links. */
  console: string | null;
  ping: PingSettings | null;
  channels: Record<string, ChannelOptions>;
  rules: Record<AlarmRule, string[]>;
}

const names = [
  "channels",
  "rules",
  "late",
  "overdue",
  "unfired",
  "stuck",
  "leaderless",
  "summary",
  "language",
  "zone",
  "console",
  "ping",
];
const pingNames = ["url", "every", "allow"];

/** @throws OPTION_INVALID, DURATION_INVALID, ZONE_UNKNOWN */
export function alarmSettings(options: AlarmOptions): AlarmSettings {
  if (typeof options !== "object" || options === null) throw wrong("alarms", "alarms must be an object");
  const stranger = Object.keys(options).find((name) => !names.includes(name));
  if (stranger !== undefined)
    throw wrong(
      `alarms.${stranger}`,
      `alarms has no ${JSON.stringify(stranger)}${meant(stranger, names)}`,
      `It has ${names.join(", ")}.`,
    );
  const channels = Object.entries(options.channels ?? {});
  const ping = options.ping === undefined ? null : pingSettings(options.ping);
  if (channels.length === 0 && ping === null)
    throw wrong(
      "alarms.channels",
      "alarms.channels names none",
      'Such as channels: { ops: { webhook: "https://…" } }.',
    );
  for (const [name, channel] of channels) checkChannel(name, channel);
  const known = channels.map(([name]) => name);
  for (const [rule, to] of Object.entries(options.rules ?? {})) {
    const path = `alarms.rules.${rule}`;
    if (!alarmRules.includes(rule as AlarmRule))
      throw wrong(
        path,
        `alarms.rules has no ${JSON.stringify(rule)}${meant(rule, alarmRules)}`,
        `They are ${alarmRules.join(", ")}.`,
      );
    const unknown = Array.isArray(to) ? to.find((name) => !known.includes(name)) : rule;
    if (unknown !== undefined)
      throw wrong(
        path,
        `${path} must list channels${Array.isArray(to) ? `; there is no ${JSON.stringify(unknown)}${meant(String(unknown), known)}` : ""}`,
        `They are ${known.join(", ")}.`,
      );
  }
  return {
    ...readerOf(options),
    ...spansOf(options),
    ping,
    channels: Object.fromEntries(channels),
    rules: channelsByRule(options.rules, known),
  };
}

/** The settings of a process without alarms of its own: it evaluates the stored rules, if it leads. */
export const noAlarms = (): AlarmSettings => ({
  ...readerOf({}),
  ...spansOf({}),
  ping: null,
  channels: {},
  rules: channelsByRule({}, []),
});

const channelsByRule = (given: AlarmOptions["rules"], usual: string[]) =>
  Object.fromEntries(alarmRules.map((rule) => [rule, given?.[rule] ?? usual])) as Record<AlarmRule, string[]>;

/** For whom messages are written. */
function readerOf({
  language = "en",
  zone = "UTC",
  console,
}: Partial<AlarmOptions>): Reader & { console: string | null } {
  if (!languages.includes(language))
    throw wrong("alarms.language", `alarms.language must be ${languages.join(" or ")}`);
  const noUrl = console === undefined ? undefined : httpUrl(console);
  if (noUrl !== undefined) throw wrong("alarms.console", `alarms.console must be ${noUrl}`);
  return { language, zone: within("alarms.zone", () => zoneName(zone)), console: console ?? null };
}

function spansOf(options: Omit<AlarmOptions, "channels">): Thresholds {
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

/** @throws OPTION_INVALID, DURATION_INVALID */
function pingSettings(options: PingGiven): PingSettings {
  if (typeof options !== "object" || options === null)
    throw wrong("alarms.ping", "alarms.ping must be an object", 'Such as { url: "https://…", every: "1m" }.');
  checkNames("alarms.ping", options, pingNames, "alarms.ping");
  const { url, every = "1m", allow = [] } = options;
  const noUrl = httpUrl(url);
  if (noUrl !== undefined) throw wrong("alarms.ping.url", `alarms.ping.url must be ${noUrl}`);
  if (!Array.isArray(allow))
    throw wrong("alarms.ping.allow", "alarms.ping.allow must be a list", 'Such as ["10.1.0.0/16"].');
  return { url, everyMs: parseDuration(every, "alarms.ping.every", 1_000), allow };
}

const wrong = (path: string, what: string, hint = "See docs/alarms.md.") =>
  new CarillonError("OPTION_INVALID", what, { hint, path });
