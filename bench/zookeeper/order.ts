/** The configuration of a client under test. ClientBench.java reads the same fields. */
export interface Order {
  client: NodeClient;
  url: string;
  /** Path of an existing node; the operations use its children, which are named by numbers. */
  path: string;
  operation: Operation;
  /** The number of concurrent requests. */
  window: number;
  count: number;
  /** The number of operations that are executed before the measured ones. */
  warmUp: number;
  bytes: number;
}

export type NodeClient = "carillon" | "node-zookeeper-client" | "zookeeper";
export type Operation = "creates" | "gets" | "sets";
export const operations: readonly Operation[] = ["creates", "gets", "sets"];

/** The result of the measured operations. */
export interface Outcome {
  perSecond: number;
  /** CPU time per operation in µs, all threads of the client, user and system. */
  cpuUsPerOperation: number;
  /** Median duration of an operation in µs, like `p99Us` present only with a window of 1. */
  p50Us?: number;
  p99Us?: number;
}
