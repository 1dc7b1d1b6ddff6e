/** The configuration of a node under test. The parent process passes it to the node's process. */
export interface Order {
  /** URL of the proxy in front of the store; `coordination` is the URL of the proxy in front of the coordination service. */
  store: string;
  coordination?: string;
  schema: string;
  name: string;
  sessionTimeoutMs: number;
  tasks: TaskOrder[];
  /** Path of the file to which handlers write each start at once, so that no start is lost at a kill -9. */
  log: string;
}

export interface TaskOrder {
  name: string;
  misfire?: "fire_once" | "skip" | "all";
}

export type Told = { kind: "started" } | { kind: "stopped" };
