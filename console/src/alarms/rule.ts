import type { Answer } from "../api/call.ts";
import type { Words } from "../messages/words.ts";
import { plain } from "../parts/value/plain.ts";

export type Alarm = Answer<"listAlarms">["items"][number];

export const rules = [
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
/** A rule of the servers' settings. Every other rule is stored in the database, with a name that its author chose. */
export type Rule = (typeof rules)[number];

export const isGiven = (rule: string): rule is Rule => (rules as readonly string[]).includes(rule);

export const ruleName = (rule: string, { t }: Pick<Words, "t">): string =>
  isGiven(rule) || rule === "test" ? t(`alarm.${rule}`) : plain(rule);
