import type { Started } from "../started.ts";

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

/** @param stopping aborted once the process stops */
export function healthOf(started: Started | undefined, node: string, stopping: AbortSignal): Health {
  const untilReady = started?.isComplete ? (started.membership.trusted() ? null : "store") : "starting";
  const why = stopping.aborted ? "stopping" : untilReady;
  return {
    ready: why === null,
    why,
    node,
    leads: (started?.membership.term() ?? null) !== null,
    running: started?.worker?.held ?? null,
  };
}
