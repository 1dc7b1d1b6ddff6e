/** What a process under test is to do: hold its share of the runs, and end them all at the instant it is told. */
export interface Order {
  url: string;
  schema: string;
  /** free: the task counts no places. counted: it counts them, up to `runs`. */
  kind: "free" | "counted";
  /** At once, of all processes together. */
  runs: number;
  /** Plans and leads; the others only run. */
  scheduler: boolean;
}

/** What a process of the rebuilt lock is to do. */
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
/** `notify` with the instant, epoch milliseconds, as its payload. */
export const channelOf = (schema: string) => `${schema}_end`;
