/**
 * Alarms: each problem is reported once when it begins, in summaries while it lasts, and once when it is over. Pure; docs/alarms.md has
 * the rules, and every state of an incident × what happens.
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
/** A rule of a node's settings. A stored rule has a name of its own: see stored-rules.ts. */
export type AlarmRule = (typeof alarmRules)[number];

const isGiven = (rule: string): rule is AlarmRule => (alarmRules as readonly string[]).includes(rule);

/** The rules that are conditions, which hold or do not hold. All other rules are events, which are counted. */
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

/** What a rule finds, in words; for a stored rule, its name. */
export const wordsOfRule = (rule: string): string => (isGiven(rule) ? ruleWords[rule] : rule);

const longestSilenceMs = 30 * 86_400_000;

/** The length of a silence. @throws OPTION_INVALID, DURATION_INVALID */
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
  /** The task; "": the problem concerns the cluster. */
  subject: string;
  /** How often it occurred since the last evaluation. */
  count: number;
  text: string;
  runId: number | null;
}

/** An incident lasts from the first open alarm of a rule until the rule has had no open alarm for a while. */
export interface Incident {
  openedMs: number;
  /** When the last message was written. */
  toldMs: number;
  /** The next summary comes at least this long after that message. */
  windowMs: number;
  total: number;
  /** How many of the occurrences in `total` have been reported. */
  told: number;
  /** Since when the rule has no open alarm; null: it has one. */
  quietMs: number | null;
}

/** `test`: a user checks whether a channel works. */
export type MessageKind = "raised" | "summary" | "cleared" | "test";

export interface AlarmMessage {
  kind: MessageKind;
  /** A rule's name; "test". */
  rule: string;
  words: string;
  atMs: number;
  sinceMs: number;
  /** `total` counts since the incident began, `news` since the last message. */
  total: number;
  news: number;
  /** The most affected tasks. */
  subjects: { task: string; count: number; text: string; run: number | null }[];
  moreSubjects: number;
  /** Number of open alarms that a silence keeps from being reported. Absent: none. */
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
 * The next state of a rule's incident, and the message to send.
 * @param news occurrences since the last evaluation @param open number of open alarms
 * @param windowMs the shortest time between messages, and how long no alarm may be open before the incident is over
 * @returns `incident` null: there is none, or it is over
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
  // The longer an incident lasts, the rarer its summaries become.
  const later = Math.min(next.windowMs * 2, Math.max(windowMs, longestWindowMs));
  return { incident: { ...next, told: next.total, toldMs: nowMs, windowMs: later }, message: "summary" };
}

/** A message not accepted within this time is given up. */
export const giveUpAfterMs = 86_400_000;

/** The delay after `attempts` failed attempts: 30 s, doubling, to one hour. */
export const againAfterMs = (attempts: number): number => Math.min(30_000 * 2 ** Math.max(0, attempts - 1), 3_600_000);

export const silenceUnknown = (silenceId: number): CarillonError =>
  new CarillonError("ALARM_UNKNOWN", `there is no silence ${silenceId} that holds`, { hint: "It may have ended." });
