/** What a client under test is to do; the words of ClientBench.java, which does the same. */
export interface Order {
  client: NodeClient;
  url: string;
  /** It is there; the nodes are its children and called by a number. */
  path: string;
  operation: Operation;
  /** Requests on their way at any time. */
  window: number;
  count: number;
  /** Operations before those that count. */
  warmUp: number;
  bytes: number;
}

export type NodeClient = "carillon" | "node-zookeeper-client" | "zookeeper";
export type Operation = "creates" | "gets" | "sets";
export const operations: readonly Operation[] = ["creates", "gets", "sets"];

/** What comes back, of the operations that count. */
export interface Outcome {
  perSecond: number;
  /** Of all the client's threads, user and system. */
  cpuUsPerOperation: number;
  /** With a window of 1. */
  p50Us?: number;
  p99Us?: number;
}
