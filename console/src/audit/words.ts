/** The acts and the kinds of objects in the audit log. */
import type { Answer, Given } from "../api/call.ts";

export type AuditEntry = Answer<"listAudit">["items"][number];
export type About = NonNullable<Given<"listAudit">["about"]>;

export const abouts: About[] = [
  ...(["task", "run", "operation", "calendar", "group", "node", "alarm", "hook"] as const),
  ...(["user", "token", "worker-key", "secret", "cluster", "audit"] as const),
];
export const acts = [
  "create",
  "edit",
  "change",
  "remove",
  "pause",
  "resume",
  "run",
  "cancel",
  "rerun",
  "redrive",
  "dismiss",
  "backfill",
  "stop",
  "limit",
  "revoke",
  "set password",
  "set",
  "restore",
  "adopt",
  "replan",
  "redeliver",
  "drain",
  "prune",
  "end sign-ins",
  "add second factor",
  "remove second factor",
  "use recovery code",
];
/** Converts an audit word into the form that message keys use: spaces and hyphens become underscores. */
export const keyOf = (word: string): string => word.replaceAll(/[ -]/g, "_");
