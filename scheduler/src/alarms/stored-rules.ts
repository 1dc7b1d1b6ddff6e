/**
 * Alarm rules that are stored, in addition to the rules of a node's settings: their form, their validation, and their times of day. Without
 * side effects; docs/operate/alarm-rules.md describes what each kind finds.
 */
import { type Duration, formatDuration, parseDuration } from "../base/duration.ts";
import { CarillonError, within } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { meant } from "../base/nearest.ts";
import { type Zone, zoneOf } from "../schedule/zone.ts";
import { alarmRules } from "./alarms.ts";

export const ruleKinds = [
  "failed",
  "slow",
  "quick",
  "deadline",
  "unfired",
  "overdue",
  "stuck",
  "paused",
  "ended",
  "unserved",
  "queue",
  "changed",
  "store",
  "snapshot",
  "coordination",
  "expiring",
] as const;
export type RuleKind = (typeof ruleKinds)[number];

/** The kinds that examine the cluster and not its tasks. Their alarms concern no task, and their scope is everything. */
export const clusterKinds: ReadonlySet<RuleKind> = new Set(["store", "snapshot", "coordination", "expiring"]);

/** The thresholds of all kinds of rules; `kindParts` lists those of each kind. */
interface Thresholds {
  /** The alarm is raised when this number of the last `of` runs failed. */
  failures?: number;
  /** The number of last runs that are examined; default: `failures`. */
  of?: number;
  /** The alarm is raised when a run takes longer than this or, of kind store, the statements of a process; then the default is 1 s. */
  longer?: Duration;
  /**
   * Kind slow: the alarm is raised when a run takes longer than `times` × the 90th percentile of the task's last successful runs. Kind
   * quick: when it takes less than the 10th percentile ÷ `times`. Default 3; no default if `longer` or `shorter` is given.
   */
  times?: number;
  /** The alarm is raised when a run succeeds in less than this. */
  shorter?: Duration;
  /**
   * Kind slow: `times` ignores runs shorter than this; default 1 min. Kind quick: `times` ignores tasks whose runs usually take less than
   * this; default 1 s.
   */
  least?: Duration;
  /** The time of day of the deadline, such as "06:00". */
  by?: string;
  zone?: string;
  /** The days of the week with a deadline; 0 is Sunday. Default: every day. */
  days?: number[];
  /**
   * True: raise the alarm before the deadline if the task's usual duration shows that the deadline will be missed. Default true.
   */
  forecast?: boolean;
  /** The alarm is raised when the condition of the rule has been true for this time. Default 1 min; of kind snapshot 10 min. */
  after?: Duration;
  /**
   * The alarm is raised when more than this number of due runs of one task wait or, of kind snapshot, when more transactions have begun since
   * a snapshot whose age the store does not tell; then the default is 100,000.
   */
  more?: number;
  /** The alarm is raised when a task's number of waiting due runs has grown by this number within the time `within`. */
  grows?: number;
  /** The time over which `grows` is measured. Default 10 min. */
  within?: Duration;
  /** The alarm is raised this long before something expires. Default 14 days. */
  before?: Duration;
}

export interface RuleScope {
  /** Names of tasks, in which `*` stands for any text. Default: every task. */
  tasks?: string[];
  groups?: string[];
  /** Only tasks with one of these owners. */
  owners?: string[];
  /** Only tasks whose `runLabels` include all of these. */
  labels?: Record<string, string>;
  /** True: tasks of every namespace. Default: only the namespace with which the rule's name begins. */
  everywhere?: boolean;
}

export interface QuietHours {
  from: string;
  to: string;
  zone: string;
}

/** A time in which planned work makes alarms expected, such as a migration: from `from` to before `to`, ISO 8601 with an offset or Z. */
export interface MaintenanceWindow {
  from: string;
  to: string;
  description?: string;
}

/** An alarm rule as users write it. */
export interface RuleContent extends Thresholds {
  kind: RuleKind;
  description?: string;
  scope?: RuleScope;
  /** The channels of the rule's messages. Default: none, so that its alarms are only listed. */
  channels?: string[];
  /** In these hours the rule sends no messages; alarms that are open at their end are reported then. */
  quiet?: QuietHours;
  /** In these windows the rule sends no messages either, as in quiet hours. A window that is over may stay. */
  maintenance?: MaintenanceWindow[];
  /** The incident is also sent to these channels once it has lasted for `after` and has an alarm that no user has acknowledged. */
  escalate?: { after: Duration; channels: string[] };
  enabled?: boolean;
}

export interface StoredRule {
  name: string;
  version: number;
  content: RuleContent;
  author: string;
  reason: string;
  changedMs: number;
  /** The bundle whose files define the rule; null if a user or a program does. */
  bundle: string | null;
}

const kindParts: Record<RuleKind, readonly (keyof Thresholds)[]> = {
  failed: ["failures", "of"],
  slow: ["longer", "times", "least"],
  quick: ["shorter", "times", "least"],
  deadline: ["by", "zone", "days", "forecast"],
  unfired: ["after"],
  overdue: ["after"],
  stuck: ["after"],
  paused: [],
  ended: [],
  unserved: ["after"],
  queue: ["more", "grows", "within"],
  changed: [],
  store: ["longer"],
  snapshot: ["after", "more"],
  coordination: ["after"],
  expiring: ["before"],
};
const needed: Partial<Record<RuleKind, readonly (keyof Thresholds)[]>> = {
  failed: ["failures"],
  deadline: ["by", "zone"],
};
const commonParts = [
  "kind",
  "description",
  "scope",
  "channels",
  "quiet",
  "maintenance",
  "escalate",
  "enabled",
] as const;

const mostListed = 100;
/** The largest number of waiting runs of a task that is counted. */
export const longestQueue = 1_000_000;
const nameShape = /^[\p{L}\p{N}][\p{L}\p{N}._:@/-]*$/u;
const timeOfDay = /^(?:[01]\d|2[0-3]):[0-5]\d$/;

/** Checks and returns the name of a stored rule. @throws OPTION_INVALID */
export function checkRuleName(name: string): string {
  if (name.length > limits.alarmRuleNameLength || !nameShape.test(name))
    throw wrong("name", `an alarm rule cannot be called ${JSON.stringify(name.slice(0, limits.alarmRuleNameLength))}`);
  if ((alarmRules as readonly string[]).includes(name) || name === "test")
    throw wrong("name", `${name} is a rule of every node's settings, so no other rule can be called so`);
  return name;
}

/** Checks a rule and returns it unchanged. @throws OPTION_INVALID, DURATION_INVALID, ZONE_UNKNOWN; the error's path names the wrong part */
export function checkRule(given: RuleContent): RuleContent {
  if (!isObject(given)) throw wrong("", "an alarm rule must be an object");
  const { kind } = given;
  if (!ruleKinds.includes(kind))
    throw wrong("kind", `an alarm rule has no kind ${JSON.stringify(kind)}${meant(String(kind), ruleKinds)}`);
  const own = kindParts[kind];
  refuseOthers(given, [...commonParts, ...own], `a rule of kind ${kind}`, "");
  const missing = needed[kind]?.find((part) => given[part] === undefined);
  if (missing !== undefined) throw wrong(missing, `a rule of kind ${kind} needs ${missing}`);
  for (const [part, value] of Object.entries(given)) checks[part as keyof RuleContent](value, part);
  const { failures, of = failures, quiet, maintenance = [] } = given;
  if (failures !== undefined && of !== undefined && of < failures)
    throw wrong("of", `of must be at least ${failures}, the number of failures`);
  if (kind === "queue" && given.more === undefined && given.grows === undefined)
    throw wrong("more", "a rule of kind queue needs more or grows");
  if (clusterKinds.has(kind) && JSON.stringify(given.scope) !== '{"everywhere":true}')
    throw wrong(
      "scope",
      `a rule of kind ${kind} examines the whole cluster, so its scope must be { everywhere: true }`,
    );
  if (given.within !== undefined && given.grows === undefined) throw wrong("grows", "within needs grows");
  if (quiet && quiet.from === quiet.to) throw wrong("quiet.to", "quiet hours must end at another time than they begin");
  for (const [at, { from, to }] of maintenance.entries())
    if (Date.parse(from) >= Date.parse(to))
      throw wrong(`maintenance[${at}].to`, `maintenance[${at}] must end after it begins`);
  return given;
}

type Check = (value: unknown, path: string) => void;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function refuseOthers(given: object, known: readonly string[], what: string, path: string): void {
  const other = Object.keys(given).find((part) => !known.includes(part));
  if (other !== undefined)
    throw wrong(`${path}${other}`, `${what} has no ${JSON.stringify(other)}${meant(other, known)}`, known);
}

const whole =
  (least: number, most: number): Check =>
  (value, path) => {
    if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most)
      throw wrong(path, `${path} must be a whole number from ${least} to ${most}`);
  };
const flag: Check = (value, path) => {
  if (typeof value !== "boolean") throw wrong(path, `${path} must be true or false`);
};
const span: Check = (value, path) => void within(path, () => parseDuration(value as Duration, path, 1_000));
const clock: Check = (value, path) => {
  if (typeof value !== "string" || !timeOfDay.test(value)) throw wrong(path, `${path} must be a time such as "06:00"`);
};
const zone: Check = (value, path) => void within(path, () => zoneOf(value));
const text =
  (longest: number): Check =>
  (value, path) => {
    if (typeof value !== "string" || value.length > longest || value.includes("\0"))
      throw wrong(path, `${path} must be a text of at most ${longest} characters`);
  };
const listed =
  (one: Check, least: number): Check =>
  (value, path) => {
    if (!Array.isArray(value) || value.length < least || value.length > mostListed)
      throw wrong(path, `${path} must be a list of ${least} to ${mostListed}`);
    value.forEach((item, at) => {
      one(item, `${path}[${at}]`);
    });
  };
const named: Check = (value, path) => {
  text(limits.taskNameLength)(value, path);
  if (value === "") throw wrong(path, `${path} must not be empty`);
};
const isoTime = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/;
/** True for a day of the calendar: `Date` reads 30 February as 2 March. */
const isDay = (day: string): boolean => new Date(`${day}T00:00:00Z`).toJSON()?.slice(0, 10) === day;
const instant: Check = (value, path) => {
  const [, day = ""] = (typeof value === "string" && isoTime.exec(value)) || [];
  if (!isDay(day) || Number.isNaN(Date.parse(value as string)))
    throw wrong(path, `${path} must be a time such as "2027-01-31T22:00:00+08:00"`);
};
const object =
  (parts: Record<string, Check>, must: readonly string[] = []): Check =>
  (value, path) => {
    if (!isObject(value)) throw wrong(path, `${path} must be an object`);
    refuseOthers(value, Object.keys(parts), path, `${path}.`);
    for (const part of must) if (value[part] === undefined) throw wrong(`${path}.${part}`, `${path} needs ${part}`);
    for (const [part, given] of Object.entries(value)) parts[part]?.(given, `${path}.${part}`);
  };
const labels: Check = (value, path) => {
  if (!isObject(value) || Object.keys(value).length > limits.runLabels) throw wrong(path, `${path} must hold texts`);
  for (const [label, given] of Object.entries(value)) text(limits.taskNameLength)(given, `${path}.${label}`);
};

const checks: Record<keyof RuleContent, Check> = {
  kind: () => undefined,
  description: text(1_000),
  failures: whole(1, mostListed),
  of: whole(1, mostListed),
  longer: span,
  times: (value, path) => {
    if (typeof value !== "number" || !(value > 1 && value <= 1_000)) throw wrong(path, `${path} must be above 1`);
  },
  shorter: span,
  least: span,
  by: clock,
  zone,
  days: listed(whole(0, 6), 1),
  forecast: flag,
  after: span,
  more: whole(0, longestQueue),
  grows: whole(1, longestQueue),
  within: span,
  before: span,
  scope: object({
    tasks: listed(named, 1),
    groups: listed(named, 1),
    owners: listed(named, 1),
    labels,
    everywhere: flag,
  }),
  channels: listed(named, 0),
  quiet: object({ from: clock, to: clock, zone }, ["from", "to", "zone"]),
  maintenance: listed(object({ from: instant, to: instant, description: text(1_000) }, ["from", "to"]), 0),
  escalate: object({ after: span, channels: listed(named, 1) }, ["after", "channels"]),
  enabled: flag,
};

const wrong = (path: string, what: string, known: readonly string[] = []) =>
  new CarillonError("OPTION_INVALID", what, {
    path,
    hint: known.length > 0 ? `It has ${known.join(", ")}.` : "See docs/operate/alarm-rules.md.",
  });

/** Returns the thresholds that are numbers or durations (in ms), with defaults filled in. */
export const thresholdsOf = ({
  kind,
  failures = 1,
  of = failures,
  longer = kind === "store" ? "1s" : undefined,
  shorter,
  times,
  least = kind === "quick" ? "1s" : "1m",
  after = kind === "snapshot" ? "10m" : "1m",
  more = kind === "snapshot" ? 100_000 : undefined,
  grows,
  within: over = "10m",
  before = "14d",
}: RuleContent) => ({
  failures,
  of,
  longerMs: longer === undefined ? null : parseDuration(longer),
  shorterMs: shorter === undefined ? null : parseDuration(shorter),
  times: times ?? (longer === undefined && shorter === undefined ? 3 : null),
  leastMs: parseDuration(least),
  afterMs: parseDuration(after),
  more: more ?? null,
  grows: grows ?? null,
  withinMs: parseDuration(over),
  beforeMs: parseDuration(before),
});

/** Returns a description of what a rule finds. */
export function ruleText(content: RuleContent): string {
  const { failures, of, longerMs, shorterMs, times, afterMs, more, grows, withinMs, beforeMs } = thresholdsOf(content);
  const lasting = formatDuration(afterMs);
  switch (content.kind) {
    case "failed":
      return of === 1 ? "the last run failed" : `${failures} of the last ${of} runs failed`;
    case "slow":
      return [
        ...(longerMs === null ? [] : [`a run takes longer than ${formatDuration(longerMs)}`]),
        ...(times === null ? [] : [`a run takes longer than ${times} times the usual`]),
      ].join(", or ");
    case "quick":
      return [
        ...(shorterMs === null ? [] : [`a run takes less than ${formatDuration(shorterMs)}`]),
        ...(times === null ? [] : [`a run takes less than the usual divided by ${times}`]),
      ].join(", or ");
    case "deadline":
      return `not done by ${content.by} ${content.zone}`;
    case "unfired":
      return `a slot did not fire for ${lasting}`;
    case "overdue":
      return `due runs wait for a worker for ${lasting}`;
    case "stuck":
      return `runs are stuck for ${lasting}`;
    case "paused":
      return "paused by its failures";
    case "ended":
      return "the schedule has no slot left";
    case "unserved":
      return `no worker takes its runs for ${lasting}`;
    case "queue":
      return [
        ...(more === null ? [] : [`more than ${more} due runs of a task wait`]),
        ...(grows === null
          ? []
          : [`within ${formatDuration(withinMs)}, more than ${grows} due runs of a task have come to wait`]),
      ].join(", or ");
    case "changed":
      return "its definition was changed";
    case "store":
      return `statements of a process take longer than ${formatDuration(longerMs ?? 0)}`;
    case "snapshot":
      return `a snapshot keeps dead rows for ${lasting}`;
    case "coordination":
      return `a process is without its coordination service for ${lasting}`;
    case "expiring":
      return `a token, a key or a certificate expires within ${formatDuration(beforeMs)}`;
    default:
      // Reached only for a kind that a newer version has stored.
      return content.kind satisfies never;
  }
}

const dayMs = 86_400_000;
const ofDayMs = (time: string): number => Number(time.slice(0, 2)) * 3_600_000 + Number(time.slice(3)) * 60_000;
const localOf = (at: Zone, ms: number): number => ms + at.at(ms).offset;
/** Converts a local time to epoch ms. A local time that is skipped when clocks go forward counts as later by the length of the gap. */
const instantOf = (at: Zone, local: number): number => local - at.at(local - at.at(local).offset).offset;

export interface Deadline {
  /** The deadline is met only by a run that was due after this time, which is a day before the deadline. */
  fromMs: number;
  byMs: number;
}

/** Returns the last deadline at or before `nowMs`, and the next deadline after it. */
export function deadlinesAround(
  { by, zone: name, days }: Pick<RuleContent, "by" | "zone" | "days">,
  nowMs: number,
): { last: Deadline; next: Deadline } {
  const at = zoneOf(name);
  const time = ofDayMs(by as string);
  const today = Math.floor(localOf(at, nowMs) / dayMs);
  // Eight days in each direction contain a deadline even if only one weekday has one. Day 0, 1970-01-01, was a Thursday.
  const some = Array.from({ length: 17 }, (_, n) => today - 8 + n)
    .filter((day) => days === undefined || days.includes((((day + 4) % 7) + 7) % 7))
    .map((day) => ({ fromMs: instantOf(at, (day - 1) * dayMs + time), byMs: instantOf(at, day * dayMs + time) }));
  const last = some.findLast(({ byMs }) => byMs <= nowMs) as Deadline;
  return { last, next: some.find(({ byMs }) => byMs > nowMs) as Deadline };
}

/** True if the rule sends nothing at `nowMs`: it is in its quiet hours, or in a maintenance window. */
export const isHeldBack = ({ quiet, maintenance = [] }: Pick<RuleContent, "quiet" | "maintenance">, nowMs: number) =>
  isQuiet(quiet, nowMs) || maintenance.some(({ from, to }) => Date.parse(from) <= nowMs && nowMs < Date.parse(to));

/** True if `nowMs` is in the quiet hours. Hours whose end is not after their beginning continue over midnight. */
export function isQuiet(quiet: QuietHours | undefined, nowMs: number): boolean {
  if (quiet === undefined) return false;
  const local = localOf(zoneOf(quiet.zone), nowMs);
  const time = ((local % dayMs) + dayMs) % dayMs;
  const [from, to] = [ofDayMs(quiet.from), ofDayMs(quiet.to)];
  return from < to ? time >= from && time < to : time >= from || time < to;
}

/** Converts a stored rule to the form of the API and of the command line's --json. */
export const ruleObject = ({ content, author, reason, changedMs, ...rest }: StoredRule) => ({
  ...rest,
  ...content,
  finds: ruleText(content),
  author,
  reason,
  changed: new Date(changedMs).toISOString(),
});
