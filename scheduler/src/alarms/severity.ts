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

/** How grave the alarms of a rule are, for services and monitors that grade them. */
export const severityOf = (rule: string): Severity => severities[rule] ?? "error";
