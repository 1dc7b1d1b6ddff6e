/** The cluster's time: the browser's clock, put right by what the server told last. */
import { useSyncExternalStore } from "react";

let offsetMs = 0;
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let second = Math.floor(Date.now() / 1_000);

export const nowMs = (): number => Date.now() + offsetMs;

/** @param toldMs the server's time, asked for at `askedMs` and answered now */
export function learnTime(toldMs: number, askedMs: number): void {
  offsetMs = toldMs - (askedMs + Date.now()) / 2;
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  timer ??= setInterval(() => {
    second = Math.floor(nowMs() / 1_000);
    for (const one of listeners) one();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
};

/** Rendered anew every second; one timer serves the page. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => second) * 1_000;
