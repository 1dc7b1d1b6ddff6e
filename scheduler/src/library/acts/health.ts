/** The state of this process in the cluster, for a probe. Nothing is sent to the store for it. */
export interface Health {
  /** It has started, its session is valid, and it is not stopping. */
  ready: boolean;
  /** `starting`: `start` was not called, or has not resolved. `store`: the store has not answered for as long as the session's trust. */
  why: null | "starting" | "store" | "stopping";
  node: string;
  /** This process is the leader: it plans the slots. */
  leads: boolean;
  /** Runs in this process; null: it has no worker. */
  running: number | null;
}
