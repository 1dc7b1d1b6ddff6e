/**
 * Runs a recipe across sessions: `serve` does the recipe's work in one session. When it returns "again" or throws, for example because
 * its session has ended, `serve` is called again with the client's current session.
 */
import { isZooKeeperError, type ZooKeeperErrorCode } from "../../base/errors.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { pause } from "./waiting.ts";

/** Errors that count as transient: a retry may succeed. */
const passing: readonly ZooKeeperErrorCode[] = [
  "CONNECTION_LOSS",
  "SESSION_EXPIRED",
  "SESSION_MOVED",
  "OPERATION_TIMEOUT",
  "REQUEST_TIMEOUT",
  "THROTTLED",
  "NOT_READ_ONLY",
  "UNREACHABLE",
  "OVERLOADED",
  "SYSTEM_ERROR",
];

export function isPassing(error: unknown): boolean {
  return isZooKeeperError(error, ...passing);
}

const shortestPauseMs = 20;
const longestPauseMs = 2_000;

/**
 * Returns the wait in ms after this number of consecutive failures. It doubles each time up to 2 s, and has jitter so that clients do not
 * retry at the same time.
 * @param chance a random number from 0 to 1
 */
export function backOffMs(failures: number, chance: number): number {
  const most = Math.min(longestPauseMs, shortestPauseMs * 2 ** Math.min(failures, 16));
  return most * (0.5 + chance / 2);
}

/**
 * Runs `take` with the client's session; if the session ends before `take` has succeeded, runs it again with the next session.
 * @throws errors that `take` throws while its session is live, or after the signal has aborted; CLOSED, ABORTED
 */
export async function acrossSessions<T>(
  zk: ZooKeeper,
  signal: AbortSignal,
  take: (session: Session) => Promise<T>,
): Promise<T> {
  for (;;) {
    const session = await zk.established(signal);
    try {
      return await take(session);
    } catch (error) {
      if (session.live || signal.aborted || zk.signal.aborted) throw error;
      await pause(0, signal); // lets timers run, as in `follow`
    }
  }
}

/**
 * Calls `serve` with the client's session again and again, until it returns "done" or the signal aborts. After an error, pauses with a
 * back-off.
 * @param trouble receives all errors, transient or not, except those of an ended session; if it throws, the loop ends
 * @throws CLOSED when the client is closed; errors that `trouble` throws
 */
export async function follow(
  zk: ZooKeeper,
  signal: AbortSignal,
  serve: (session: Session) => Promise<"again" | "done">,
  trouble: (error: unknown) => void,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    let session: Session | undefined;
    try {
      session = await zk.established(signal);
      if ((await serve(session)) === "done") return;
      failures = 0;
    } catch (error) {
      if (zk.signal.aborted) throw error;
      if (signal.aborted) return;
      if (session && !session.live) {
        // The session has ended, and `established` waits for the next one. The pause lets timers run: after a stop of the process,
        // `session.live` may be false before the client's timer has ended the session.
        failures = 0;
        await pause(0, signal);
        continue;
      }
      trouble(error);
      await pause(backOffMs(failures++, Math.random()), signal);
    }
  }
}
