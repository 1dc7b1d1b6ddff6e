import type { Answer } from "../api/call.ts";

export type Alarm = Answer<"listAlarms">["items"][number];
export type Rule = Alarm["rule"];

export const rules: Rule[] = [
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
];
