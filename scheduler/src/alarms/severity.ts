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

/** Returns the severity of a rule's alarms, for services that distinguish severities. */
export const severityOf = (rule: string): Severity => severities[rule] ?? "error";
