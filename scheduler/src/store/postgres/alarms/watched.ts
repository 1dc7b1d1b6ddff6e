import type { Finding } from "../../../alarms/alarms.ts";
import type { SqlClient } from "../../../base/change.ts";

/** The transaction and time of one look. */
export interface Looking {
  client: SqlClient;
  s: string;
  now: number;
  summaryMs: number;
}

/** A rule as its alarms and incidents need it, whether it is of the settings or stored. */
export interface Watched {
  rule: string;
  /** What it finds, for messages. */
  words: string;
  channels: readonly string[];
  /** Its alarms hold or do not hold; those of other rules are counted. */
  isCondition: boolean;
  /** Its alarms end when the task has succeeded. */
  endsBySuccess?: boolean;
  /** How long an alarm that is no condition stays open after it was last found. */
  lastsMs: number;
  /** It sends no message now. */
  isQuiet?: boolean;
  escalate?: { afterMs: number; channels: readonly string[] };
}

/** What a rule has found about one task. */
export type Found = Omit<Finding, "rule">;

/** Only one process looks at a time, and no rule changes while one looks. */
export const lookLock = (s: string) => `${s} alarms`;
