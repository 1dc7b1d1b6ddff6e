import type { Thresholds } from "../../alarms/alarm-store.ts";
import { type AlarmRule, alarmRules } from "../../alarms/alarms.ts";
import { type Language, languages, type Reader } from "../../alarms/message-text.ts";
import { type Duration, parseDuration } from "../../base/duration.ts";
import { CarillonError, within } from "../../base/errors.ts";
import { checkNames, meant } from "../../base/nearest.ts";
import { zoneName } from "../../schedule/zone.ts";
import { type ChannelOptions, checkChannel, httpUrl } from "./channels.ts";

export interface AlarmOptions {
  /** The channels by name. Give every process that may lead the same channels. */
  channels?: Record<string, ChannelOptions>;
  /** For each rule, the names of the channels that get its messages; default: all channels. An empty list turns the rule off. */
  rules?: Partial<Record<AlarmRule, string[]>>;
  /** How late a run's first attempt must start to count as late; default 10 s. */
  late?: Duration;
  /** An alarm is raised if a due run is not claimed for this time; default 1 min. */
  overdue?: Duration;
  /** An alarm is raised when a slot has been due for this long and has still not been planned; default 1 min. */
  unfired?: Duration;
  /** An alarm is raised if a claimed run has not started, is past its timeout, or has lost its worker for this time; default 1 min. */
  stuck?: Duration;
  /** An alarm is raised if the cluster has no leader for this time; default 30 s. */
  leaderless?: Duration;
  /** The minimum time between two messages of one rule, and the time without problems after which "cleared" is sent; default 1 min. */
  summary?: Duration;
  /** The language of the messages; default "en". */
  language?: Language;
  /** The time zone of the times in messages; default UTC. */
  zone?: string;
  /** The URL at which users open the console. If it is given, messages contain links to it. */
  console?: string;
  /**
   * An external monitor. The leader calls it regularly as long as the cluster works on time; the monitor raises an alarm if the calls stop.
   */
  ping?: PingGiven;
}

export interface PingGiven {
  /** The URL, which is called with GET. */
  url: string;
  /** The interval between two calls; default 1 min. */
  every?: Duration;
  /** Private and local addresses to which the URL's host may resolve. A host that is itself an address needs no entry. */
  allow?: string[];
}

export interface PingSettings {
  url: string;
  everyMs: number;
  allow: string[];
}

export interface AlarmSettings extends Thresholds, Reader {
  /** null if messages contain no links. */
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

/** Validates the options and adds defaults. @throws OPTION_INVALID, DURATION_INVALID, ZONE_UNKNOWN */
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

/** The settings of a process without the option `alarms`. If it leads, it evaluates the alarm rules that are in the store. */
export const noAlarms = (): AlarmSettings => ({
  ...readerOf({}),
  ...spansOf({}),
  ping: null,
  channels: {},
  rules: channelsByRule({}, []),
});

const channelsByRule = (given: AlarmOptions["rules"], usual: string[]) =>
  Object.fromEntries(alarmRules.map((rule) => [rule, given?.[rule] ?? usual])) as Record<AlarmRule, string[]>;

/** Returns the language and zone of messages, and the console's URL. */
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

/** Validates the option `ping`. @throws OPTION_INVALID, DURATION_INVALID */
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

const wrong = (path: string, what: string, hint = "See docs/operate/alarms.md.") =>
  new CarillonError("OPTION_INVALID", what, { hint, path });
