/** The configuration of a process under test, which holds its share of the runs and ends all of them at the notified instant. */
export interface Order {
  url: string;
  schema: string;
  /** "free": the task has no concurrency limit. "counted": its limit is `runs`. */
  kind: "free" | "counted";
  /** The number of runs that are in progress at once in all processes together. */
  runs: number;
  /** True in the one process that also plans and leads; the others only execute runs. */
  scheduler: boolean;
}

/** The configuration of a process that completes runs with one Redis lock each. */
export interface LockOrder {
  url: string;
  redisUrl: string;
  schema: string;
  /** This process completes the runs numbered from `from` (inclusive) to `to` (exclusive). */
  from: number;
  to: number;
}

export const parallel = "parallel";
export const serial = "serial";
/** Name of the PostgreSQL notification channel; its payload is the instant at which all runs end, in epoch ms. */
export const channelOf = (schema: string) => `${schema}_end`;
