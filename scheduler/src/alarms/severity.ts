export type Severity = "critical" | "error" | "warning" | "info";

const severities: Readonly<Record<string, Severity>> = {
  leaderless: "critical",
  rewound: "critical",
  late: "warning",
  clock: "warning",
  paused: "warning",
  ended: "info",
  test: "info",
};

/** Returns the severity of a rule's alarms; "error" for a rule without a severity of its own. */
export const severityOf = (rule: string): Severity => severities[rule] ?? "error";
