import type { Finding } from "../../../alarms/alarms.ts";
import type { StoredRule } from "../../../alarms/stored-rules.ts";
import type { SqlClient } from "../../../base/change.ts";

/** The transaction and the time of one evaluation of the alarm rules. */
export interface Looking {
  client: SqlClient;
  s: string;
  now: number;
  summaryMs: number;
}

/** One evaluation of the stored rules. */
export interface Following extends Looking {
  /** The time of the evaluation before this one, in ms; null if there was none. */
  lastLookMs: number | null;
}

/** What alarms and incidents need of a rule, whether the rule is built in or stored. */
export interface Watched {
  rule: string;
  /** A description of what the rule finds, for messages. */
  words: string;
  channels: readonly string[];
  /** True if the rule's alarms either hold or do not hold; false if each finding is counted, as for failures. */
  isCondition: boolean;
  /** True if the count of a finding is the number of nodes or other parts of the cluster that it concerns now; more of them are news. */
  countsParts?: boolean;
  /** True if the rule's alarms end when the task has succeeded. */
  endsBySuccess?: boolean;
  /** How long, in ms, an alarm that is not a condition stays open after its last finding. */
  lastsMs: number;
  /** True if the rule sends no messages at present, because of its quiet hours. */
  isQuiet?: boolean;
  escalate?: { afterMs: number; channels: readonly string[] };
}

/** A rule's finding about one task. */
export type Found = Omit<Finding, "rule">;

/** The evaluation of one stored rule. */
export interface Finder extends Following {
  rule: Pick<StoredRule, "name" | "content">;
  /** SQL condition: a task `t` is in the rule's scope. */
  scope: string;
  /** The values of `scope`, $1 to $4. */
  values: readonly unknown[];
  /** New findings, read from the tasks' counters of failed runs and missed slots. */
  news: readonly Finding[];
}

export type Find = (finder: Finder) => Promise<Found[]>;

/** The name of the lock that lets only one process evaluate alarm rules at a time, and prevents changes of rules meanwhile. */
export const lookLock = (s: string) => `${s} alarms`;
