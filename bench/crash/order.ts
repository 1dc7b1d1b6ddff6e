/** The configuration of a worker under test. */
export interface Order {
  store: string;
  schema: string;
  name: string;
  sessionTimeoutMs?: number;
  graceMs?: number;
  /** Path of the file to which handlers write each start and end at once, so that no line is lost at a kill -9. */
  log: string;
  /** The duration of a first attempt, in ms. */
  workMs: number;
}

export const taskName = "crash";
