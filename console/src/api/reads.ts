/**
 * Tracks whether the server answers reads. An open event stream does not show it, because the server sends the stream's keep-alive
 * comments even while its store is unavailable.
 */
import { useSyncExternalStore } from "react";

export interface Reads {
  /** `slow`: a read is pending and no read was answered since it began; `failed`: the server or its store was unavailable. */
  state: "answered" | "slow" | "failed";
  /** Epoch ms of the last answered read; null in the state `answered`, or if no read was ever answered. */
  sinceMs: number | null;
}

/** A pending read sets the state to `slow` after this time in ms, unless another read was answered since it began. */
const patienceMs = 2_500;

let reads: Reads = { state: "answered", sinceMs: null };
let answeredMs: number | null = null;
const listeners = new Set<() => void>();

function become(state: Reads["state"]): void {
  if (state === reads.state) return;
  reads = { state, sinceMs: state === "answered" ? null : answeredMs };
  for (const listener of listeners) listener();
}

/**
 * Starts the timer of a read.
 * @returns a function that must be called when the read ends. `neither` leaves the state as it is, for example after a refusal.
 */
export function beginRead(): (how: "answered" | "failed" | "neither") => void {
  const beganMs = Date.now();
  const timer = setTimeout(() => {
    if (reads.state === "answered" && (answeredMs ?? 0) < beganMs) become("slow");
  }, patienceMs);
  return (how) => {
    clearTimeout(timer);
    if (how === "answered") answeredMs = Date.now();
    if (how !== "neither") become(how);
  };
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};
export const useReads = (): Reads => useSyncExternalStore(subscribe, () => reads);
