/**
 * Alarms: a problem is reported once when it begins, in summaries while it lasts, and once when it is over. Without side effects;
 * docs/operate/alarms.md describes the rules, and what happens in every state of an incident.
 */
import { type Duration, parseDuration } from "../base/duration.ts";
import { CarillonError } from "../base/errors.ts";

export const alarmRules = [
  "failed",
  "exhausted",
  "late",
  "overdue",
  "unfired",
  "stuck",
  "leaderless",
  "clock",
  "rewound",
  "unreadable",
  "paused",
  "ended",
  "recovery",
] as const;
/** A rule of a node's settings. Stored rules have names that users choose: see stored-rules.ts. */
export type AlarmRule = (typeof alarmRules)[number];

const isGiven = (rule: string): rule is AlarmRule => (alarmRules as readonly string[]).includes(rule);

/**
 * The rules for conditions: at each evaluation, a condition is true or false. All other rules are for events, which are counted.
 */
export const conditions: ReadonlySet<AlarmRule> = new Set([
  "overdue",
  "stuck",
  "leaderless",
  "clock",
  "rewound",
  "unreadable",
  "paused",
  "ended",
]);

export const ruleWords: Record<AlarmRule, string> = {
  failed: "runs failed",
  exhausted: "runs failed after all their tries",
  late: "runs started late",
  overdue: "due runs wait",
  unfired: "slots did not fire",
  stuck: "runs are stuck",
  leaderless: "no node leads",
  clock: "the store's clock stepped",
  rewound: "cluster time went back",
  unreadable: "the leading node cannot read tasks",
  paused: "a task was paused by its failures",
  ended: "a schedule is over",
  recovery: "the store was recovered",
};

/** Returns a description of what a rule of the settings finds; for a stored rule its name. */
export const wordsOfRule = (rule: string): string => (isGiven(rule) ? ruleWords[rule] : rule);

const longestSilenceMs = 30 * 86_400_000;

/** Parses the duration of a silence; returns ms. @throws OPTION_INVALID if it is longer than 30 days, DURATION_INVALID */
export function silenceSpanMs(given: Duration): number {
  const spanMs = parseDuration(given, "for", 1_000);
  if (spanMs <= longestSilenceMs) return spanMs;
  throw new CarillonError("OPTION_INVALID", "a silence lasts 30 days at most", {
    hint: "Turn the rule off for good, in the alarms' file.",
  });
}

/** A problem that a rule has found. */
export interface Finding {
  rule: AlarmRule;
  /** The name of the task; "" if the problem concerns the cluster. */
  subject: string;
  /** The number of occurrences since the last evaluation. */
  count: number;
  text: string;
  runId: number | null;
}

/** An incident lasts from a rule's first open alarm until the rule has had no open alarm for `summaryMs`, see `stepIncident`. */
export interface Incident {
  openedMs: number;
  /** The time in epoch ms at which the last message was stored. */
  toldMs: number;
  /** The next summary is sent at the earliest this many ms after the last message. */
  windowMs: number;
  total: number;
  /** The part of `total` that messages have reported. */
  told: number;
  /** The time in epoch ms since which the rule has no open alarm; null: it has one. */
  quietMs: number | null;
}

/** `test`: a user tests whether a channel works. */
export type MessageKind = "raised" | "summary" | "cleared" | "test";

export interface AlarmSubject {
  /** "": the alarm is about no task. */
  task: string;
  /** The task's owner; absent: it has none. */
  owner?: string;
  count: number;
  text: string;
  run: number | null;
}

export interface AlarmMessage {
  kind: MessageKind;
  /** The rule's name; "test" for a test message. */
  rule: string;
  words: string;
  atMs: number;
  sinceMs: number;
  /** The number of occurrences since the incident began; `news` counts only those since the last message. */
  total: number;
  news: number;
  /** The most affected tasks; `moreSubjects` is the number of other tasks. */
  subjects: AlarmSubject[];
  moreSubjects: number;
  /** The number of open alarms that the message omits because they are silenced; undefined: none. */
  silenced?: number;
}

export const testMessage = (who: string, nowMs: number): AlarmMessage => ({
  kind: "test",
  rule: "test",
  words: `a test by ${who}: nothing is wrong`,
  atMs: nowMs,
  sinceMs: nowMs,
  total: 0,
  news: 0,
  subjects: [],
  moreSubjects: 0,
});

const longestWindowMs = 3_600_000;

/**
 * Computes the next state of a rule's incident, and the message to send.
 * @param news occurrences since the last evaluation @param open number of open alarms
 * @param windowMs the shortest time between messages, and the time without open alarms after which the incident is over
 * @returns `incident`: null if there is none or it is over; `message`: null if none is to be sent
 */
export function stepIncident(
  incident: Incident | null,
  news: number,
  open: number,
  nowMs: number,
  windowMs: number,
): { incident: Incident | null; message: MessageKind | null } {
  if (incident === null) {
    if (open === 0) return { incident: null, message: null };
    const begun = {
      openedMs: nowMs,
      toldMs: nowMs,
      windowMs,
      total: Math.max(1, news),
      told: Math.max(1, news),
      quietMs: null,
    };
    return { incident: begun, message: "raised" };
  }
  const quietMs = open > 0 ? null : (incident.quietMs ?? nowMs);
  const next = { ...incident, total: incident.total + news, quietMs };
  if (quietMs !== null && nowMs - quietMs >= windowMs) return { incident: null, message: "cleared" };
  if (next.total === next.told || nowMs - next.toldMs < next.windowMs) return { incident: next, message: null };
  // Double the interval after each summary, so that a long incident sends fewer messages.
  const later = Math.min(next.windowMs * 2, Math.max(windowMs, longestWindowMs));
  return { incident: { ...next, told: next.total, toldMs: nowMs, windowMs: later }, message: "summary" };
}

/** A message that no channel has accepted for this many ms is given up. */
export const giveUpAfterMs = 86_400_000;

/** Returns the delay in ms after `attempts` failed attempts: 30 s, doubled by each further attempt, up to one hour. */
export const againAfterMs = (attempts: number): number => Math.min(30_000 * 2 ** Math.max(0, attempts - 1), 3_600_000);

export const silenceUnknown = (silenceId: number): CarillonError =>
  new CarillonError("ALARM_UNKNOWN", `there is no silence ${silenceId} that holds`, { hint: "It may have ended." });
