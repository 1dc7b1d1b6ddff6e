/** The orders for a process under test: hold its share of the runs, and end them all at the instant that it receives. */
export interface Order {
  url: string;
  schema: string;
  /** free: the task has no concurrency limit. counted: it has one, of `runs`. */
  kind: "free" | "counted";
  /** The number of runs at once, of all processes together. */
  runs: number;
  /** This process plans and leads; the others only run. */
  scheduler: boolean;
}

/** The orders for a process of the rebuilt lock. */
export interface LockOrder {
  url: string;
  redisUrl: string;
  schema: string;
  /** Numbers of the runs that end here. */
  from: number;
  to: number;
}

export const parallel = "parallel";
export const serial = "serial";
/** The notification channel; its payload is the instant, in epoch ms. */
export const channelOf = (schema: string) => `${schema}_end`;
