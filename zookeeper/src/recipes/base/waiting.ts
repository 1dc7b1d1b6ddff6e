/** Functions that wait until an event, a time limit or a signal. */
import { ZooKeeperError } from "../../base/errors.ts";
import { heardByMany } from "../../base/signals.ts";

const longestTimerMs = 2 ** 31 - 1;

/** Resolves after `ms`, or at once when the signal aborts; the caller must check the signal. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, Math.min(ms, longestTimerMs));
    if (signal) heardByMany(signal).addEventListener("abort", end, { once: true });
  });
}

export interface WaitOptions {
  /** The longest wait in ms; default: no limit. */
  readonly limitMs?: number;
  /** Aborts the wait, which then rejects with ABORTED. */
  readonly signal?: AbortSignal;
}

/**
 * Waits until `begin`'s `resolve` or `reject` is called.
 * @param begin starts the work that will call one of them, and returns a function that cancels this work
 * @returns undefined if the limit passes first
 * @throws ABORTED by the signal, OPTION_INVALID for a wrong limit, the error that `reject` gets
 */
export function waitFor<T>(
  what: string,
  { limitMs = Number.POSITIVE_INFINITY, signal }: WaitOptions,
  begin: (resolve: (value: T) => void, reject: (error: unknown) => void) => () => void,
): Promise<T | undefined> {
  if (Number.isNaN(limitMs) || limitMs < 0) {
    const hint = "give a number of milliseconds from 0 on";
    return Promise.reject(new ZooKeeperError("OPTION_INVALID", `${what}: limitMs is ${limitMs}`, { hint }));
  }
  return new Promise((resolve, reject) => {
    let undo: (() => void) | undefined;
    let settled = false;
    const end = (settle: () => void) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      undo?.();
      settle();
    };
    const abort = () =>
      end(() => reject(new ZooKeeperError("ABORTED", `${what}: given up by its signal`, { cause: signal?.reason })));
    const timer = limitMs <= longestTimerMs ? setTimeout(() => end(() => resolve(undefined)), limitMs) : undefined;
    if (signal?.aborted) return abort();
    if (signal) heardByMany(signal).addEventListener("abort", abort, { once: true });
    undo = begin(
      (value) => end(() => resolve(value)),
      (error) => end(() => reject(error)),
    );
    if (settled) undo();
  });
}
