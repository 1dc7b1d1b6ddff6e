/** What a process of the soak is to be, and what it says to the one who holds it. */
export interface NodeOrder {
  readonly kind: "node";
  readonly name: string;
  /** By way of its own line. */
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

/** Asked of a process: what it holds now, after its garbage was collected. */
export interface Held {
  readonly rssBytes: number;
  readonly heapBytes: number;
  /** Memory outside of the heap that JavaScript holds. */
  readonly externalBytes: number;
  /** Sockets, timers, files that keep Node running. */
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
