/** The configuration of a node under test. */
export interface Order {
  /** Both URLs lead through proxies. */
  store: string;
  coordination?: string;
  schema: string;
  name: string;
  sessionTimeoutMs: number;
  tasks: TaskOrder[];
  /** Each start is written to this file as it happens, so that a kill -9 loses none. */
  log: string;
}

export interface TaskOrder {
  name: string;
  misfire?: "fire_once" | "skip" | "all";
}

export type Told = { kind: "started" } | { kind: "stopped" };
