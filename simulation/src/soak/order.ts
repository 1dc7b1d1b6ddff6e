/** The configuration of a process of the soak test, and its messages to its parent process. */
interface MemberOrder {
  readonly name: string;
  readonly sessionTimeoutMs: number;
  readonly log: string;
}

export interface NodeOrder extends MemberOrder {
  readonly kind: "node";
  /** URL of the store, through this process's own proxy (`Line`). */
  readonly store: string;
  readonly coordination?: string;
  readonly schema: string;
  readonly listen: string;
  /** Set if the load is slots in millions: the grid of their tasks, and the folder for the records of their starts. */
  readonly many?: { readonly grid: Grid; readonly folder: string };
}

/** Tasks with the same period, whose slots are spread evenly over it. `rounds` is the number of slots of each task that are measured. */
export interface Grid {
  readonly tasks: number;
  readonly rounds: number;
}

export interface WorkerOrder extends MemberOrder {
  readonly kind: "worker";
  readonly servers: readonly string[];
  readonly key: string;
}

export type Order = NodeOrder | WorkerOrder;

/** Resources of a process, measured after a garbage collection. */
export interface Held {
  readonly rssBytes: number;
  readonly heapBytes: number;
  /** Memory in bytes outside the heap that JavaScript objects hold (`external`). */
  readonly externalBytes: number;
  /** Number of active resources (sockets, timers, files) that keep Node running. */
  readonly handles: number;
}

export type Told = { readonly kind: "started" } | { readonly kind: "held"; readonly held: Held };
export type Asked = "held" | "stop";

/** A line of the handlers' log. Each is written synchronously, so a SIGKILL loses none. */
export type Noted =
  | {
      readonly n: "start";
      readonly node: string;
      readonly pid: number;
      readonly run: number;
      readonly task: string;
      readonly attempt: number;
      readonly fence: number;
      readonly slot: number | null;
      readonly due: number;
      readonly at: number;
    }
  | {
      readonly n: "end";
      readonly fence: number;
      readonly at: number;
      readonly how: "returned" | "stopped";
      readonly why: string | null;
    };
