/** The state of this process in the cluster, for a probe. Reading it sends no request to the store. */
export interface Health {
  /** True if the process has started, its session is valid, and it is not stopping. */
  ready: boolean;
  /**
   * `starting`: `start` was not called, or has not resolved. `store`: the store has not answered for so long that the session is in doubt.
   */
  why: null | "starting" | "store" | "stopping";
  node: string;
  /** This process is the leader: it plans the slots. */
  leads: boolean;
  /** The number of runs that execute in this process; null: it has no worker. */
  running: number | null;
}
