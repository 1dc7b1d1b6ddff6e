/** Order for a process of the soak, and its messages to its parent process. */
export interface NodeOrder {
  readonly kind: "node";
  readonly name: string;
  /** Through its own line. */
  readonly store: string;
  readonly coordination?: string;
  readonly schema: string;
  readonly listen: string;
  readonly log: string;
}

export interface WorkerOrder {
  readonly kind: "worker";
  readonly name: string;
  readonly servers: readonly string[];
  readonly key: string;
  readonly log: string;
}

export type Order = NodeOrder | WorkerOrder;

/** Resources of a process, after a garbage collection. */
export interface Held {
  readonly rssBytes: number;
  readonly heapBytes: number;
  /** Memory outside the heap that JavaScript holds. */
  readonly externalBytes: number;
  /** Sockets, timers and files that keep Node running. */
  readonly handles: number;
}

export type Told = { readonly kind: "started" } | { readonly kind: "held"; readonly held: Held };
export type Asked = "held" | "stop";

/** A line of the log that the handlers write, as it happens: a kill -9 loses none. */
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
