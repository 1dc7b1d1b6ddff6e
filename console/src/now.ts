/** The cluster's time: the browser's clock plus the offset measured at the server's last answer. */
import { useSyncExternalStore } from "react";

let offsetMs = 0;
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let second = Math.floor(Date.now() / 1_000);

export const nowMs = (): number => Date.now() + offsetMs;

/** @param toldMs the server's time in epoch ms; the request was sent at `askedMs` (epoch ms) and the answer has just arrived */
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

/** The cluster's time in epoch ms, in whole seconds. The component re-renders every second; all components share one timer. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => second) * 1_000;
