/**
 * Watches whether reads are answered. The event stream alone does not show it: the server sends its comments from memory, so the
 * stream stays open while the server waits for its store.
 */
import { useSyncExternalStore } from "react";

export interface Reads {
  /** `slow`: a read waits and none was answered since it began; `failed`: the server, or its store, could not be reached. */
  state: "answered" | "slow" | "failed";
  /** Epoch ms of the last answer before the trouble; null if there was none, or while there is no trouble. */
  sinceMs: number | null;
}

/** A read that waits longer than this is reported. */
const patienceMs = 2_500;

let reads: Reads = { state: "answered", sinceMs: null };
let answeredMs: number | null = null;
const listeners = new Set<() => void>();

function become(state: Reads["state"]): void {
  if (state === reads.state) return;
  reads = { state, sinceMs: state === "answered" ? null : answeredMs };
  for (const listener of listeners) listener();
}

/** @returns a function that must be called when the read has ended; `neither` says nothing about the store, such as a refusal */
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
