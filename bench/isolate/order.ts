/** The configuration of a node under test. */
export interface Order {
  url: string;
  schema: string;
  name: string;
  /** The number of tasks that fire each second. */
  tasks: number;
  /** Where the handler of the task "computing" runs; null: this process has no such task. */
  computes: "plain" | "thread" | "process" | null;
  /** The number of runs of each kind of no-op, executed one after the other; their durations are recorded. Then the node is idle. */
  rounds: number;
}

/** The configuration of a BullMQ worker under test. */
export interface PeerOrder {
  redis: string;
  queue: string;
  /** "overhead": measure the durations of no-ops. "beside": execute jobs beside a job that computes. */
  part: "overhead" | "beside";
  rounds: number;
  useWorkerThreads: boolean;
}

/** The kinds of no-op; a recorded duration contains the index in this array. */
export const kinds = ["plain", "thread", "process"] as const;

/** Returns the offset of a task's slots in each second, in ms. The offsets spread the slots of all tasks evenly over the second. */
export const phaseMs = (task: number, tasks: number) => Math.floor((task * 1_000) / tasks);
export const taskName = (task: number) => `second-${task}`;
export const computingName = (queue: string) => `${queue}-computing`;

/** The payload of a run that computes: for how many ms. */
export interface Computing {
  ms: number;
}
