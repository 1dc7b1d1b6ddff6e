/**
 * The state of this process in the cluster, for a liveness or readiness probe. The state is in memory; reading it sends no query to the
 * store.
 */
export interface Health {
  /** True if the process has started, its session is valid, and it is not stopping. */
  ready: boolean;
  /**
   * Why the process is not ready. `starting`: `start` was not called, or has not resolved. `store`: the store has not answered for so long
   * that the session may have expired. null if the process is ready.
   */
  why: null | "starting" | "store" | "stopping";
  node: string;
  /** True if this process is the leader, which plans the slots. */
  leads: boolean;
  /** The number of runs that execute in this process; null if it has no worker. */
  running: number | null;
}
