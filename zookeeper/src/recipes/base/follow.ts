/**
 * Keeps a recipe in place from session to session: `serve` is the recipe's work in one session. When that session ends, or an error
 * occurs that can pass by itself, `serve` is called again with the session of that moment.
 */
import { isZooKeeperError, type ZooKeeperErrorCode } from "../../base/errors.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { pause } from "./waiting.ts";

/** Errors that pass by themselves; all others need a person to fix their cause. */
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
 * The wait in ms after this number of consecutive failures: it doubles, and is jittered so that clients do not act in step.
 * @param chance a random number from 0 to 1
 */
export function backOffMs(failures: number, chance: number): number {
  const most = Math.min(longestPauseMs, shortestPauseMs * 2 ** Math.min(failures, 16));
  return most * (0.5 + chance / 2);
}

/**
 * Runs `take` in the client's session, and again in the next session if the session ends meanwhile.
 * @throws errors that `take` throws while its session lives; CLOSED, ABORTED
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
 * Calls `serve` with the client's session until it returns "done" or the signal aborts; pauses after an error.
 * @param trouble receives all errors, transient or not, except those of an ended session; an error that it throws ends the loop
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
        // The session ended meanwhile: the next one is on its way, and `established` waits for it. The pause lets timers run, in
        // case a stopped process has noticed the end by the clock before its client did.
        failures = 0;
        await pause(0, signal);
        continue;
      }
      trouble(error);
      await pause(backOffMs(failures++, Math.random()), signal);
    }
  }
}
