/** The orders for a client under test, in the words of ClientBench.java, which does the same. */
export interface Order {
  client: NodeClient;
  url: string;
  /** The existing parent; the nodes are its children and named by a number. */
  path: string;
  operation: Operation;
  /** The number of concurrent requests. */
  window: number;
  count: number;
  /** The number of operations before the measured ones. */
  warmUp: number;
  bytes: number;
}

export type NodeClient = "carillon" | "node-zookeeper-client" | "zookeeper";
export type Operation = "creates" | "gets" | "sets";
export const operations: readonly Operation[] = ["creates", "gets", "sets"];

/** The result of the measured operations. */
export interface Outcome {
  perSecond: number;
  /** Processor time of all the client's threads, user and system. */
  cpuUsPerOperation: number;
  /** Only with a window of 1. */
  p50Us?: number;
  p99Us?: number;
}
