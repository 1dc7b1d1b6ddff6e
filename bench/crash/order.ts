/** The configuration of a worker under test. */
export interface Order {
  store: string;
  schema: string;
  name: string;
  sessionTimeoutMs?: number;
  graceMs?: number;
  /** Each start and end is written to this file as it happens, so that a kill -9 loses none. */
  log: string;
  /** The duration of a first attempt. */
  workMs: number;
}

export const taskName = "crash";
