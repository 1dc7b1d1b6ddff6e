/** The orders for a process under test. */
export interface Order {
  url: string;
  schema: string;
  name: string;
  /** The number of tasks that fire each second. */
  tasks: number;
  /** Where the handler of the task "computing" runs; null: this process has no such task. */
  computes: "plain" | "thread" | "process" | null;
  /** Runs of each no-op, one after the other, whose durations are noted; then it is idle. */
  rounds: number;
}

/** The orders for a BullMQ worker under test. */
export interface PeerOrder {
  redis: string;
  queue: string;
  /** Durations of no-ops, or jobs beside one that computes. */
  part: "overhead" | "beside";
  rounds: number;
  useWorkerThreads: boolean;
}

/** The kinds of no-op, by their place in a note. */
export const kinds = ["plain", "thread", "process"] as const;

/** The time from each second's start to a task's slots, in ms: the slots of all tasks lie evenly over the second. */
export const phaseMs = (task: number, tasks: number) => Math.floor((task * 1_000) / tasks);
export const taskName = (task: number) => `second-${task}`;
export const computingName = (queue: string) => `${queue}-computing`;

/** The payload of a handler that computes. */
export interface Computing {
  ms: number;
}
