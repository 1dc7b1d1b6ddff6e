import { pause, systemClock } from "../base/clock.ts";
import { CarillonError, messageOf } from "../base/errors.ts";
import { type BringUp, type BringUpOptions, bringUp } from "./bring-up.ts";
import { boundLog, logCheckMs } from "./log-file.ts";
import type { Place } from "./place.ts";
import { attend, type Presence } from "./presence.ts";

const firstRetryMs = 100;
const longestRetryMs = 5_000;

export interface Supervision {
  revive(): Promise<void>;
  release(): Promise<void>;
}

/**
 * Keeps this process registered as a user of a running server until `release` is called. States: *present* (connected), *lost*
 * (the connection broke; attempts to bring the server up follow one another, with growing pauses), and *released*, which is
 * final. The timers and the connection do not keep the process alive, but an attempt in progress does.
 */
export function supervise(
  place: Place,
  opened: BringUp,
  options: Omit<BringUpOptions, "signal" | "create">,
): Supervision {
  const stopped = new AbortController();
  let presence: Presence | undefined;
  let attempt: Promise<void> | undefined;
  let retryMs = firstRetryMs;
  let cancelRetry = (): void => undefined;
  let left: Promise<void> | undefined;

  const hold = (held: Presence) => {
    presence?.drop(); // the process may not have noticed the former server's end yet; with two connections it would count as two users
    presence = held;
    retryMs = firstRetryMs;
    void held.ended.then(() => {
      if (presence !== held) return;
      presence = undefined;
      if (left !== undefined) return;
      options.log("lost the embedded PostgreSQL");
      retry(0);
    });
  };

  /** Brings the server up; concurrent callers share one attempt. */
  const bringBack = (): Promise<void> => {
    attempt ??= (async () => {
      cancelRetry();
      try {
        const brought = await bringUp(place, { ...options, create: false, signal: stopped.signal });
        options.log(`the embedded PostgreSQL is back (${brought.started})`);
        hold(brought.presence);
      } catch (error) {
        if (left === undefined) retry(retryMs, error);
        throw error;
      } finally {
        attempt = undefined;
      }
    })();
    return attempt;
  };

  const retry = (afterMs: number, error?: unknown) => {
    if (error !== undefined) {
      options.log(`cannot bring the embedded PostgreSQL back, trying again in ${afterMs} ms: ${messageOf(error)}`);
      retryMs = Math.min(retryMs * 2, longestRetryMs);
    }
    cancelRetry();
    const timer = setTimeout(() => {
      bringBack().catch(() => {
        // Already handled: `bringBack` logs the failure and schedules the next attempt.
      });
    }, afterMs).unref();
    cancelRetry = () => clearTimeout(timer);
  };

  const bounding = setInterval(() => {
    boundLog(place.log).catch((error: unknown) => options.log(`cannot cut the server's log: ${messageOf(error)}`));
  }, logCheckMs).unref();

  const leave = async () => {
    cancelRetry();
    clearInterval(bounding);
    stopped.abort();
    await attempt?.catch(() => {
      // The attempt was cancelled by the release, or it failed; its own caller receives the error.
    });
    for (let last: Presence | string | undefined = presence; ; ) {
      if (last !== undefined && typeof last !== "string" && (await last.leave(place, options.log))) return;
      // The connection broke. Either another user is stopping the server, or the server still runs and this process was its last user.
      last = await attend(place, patient);
      if (last === "absent") return;
      if (last === "busy") await pause(systemClock, 20);
    }
  };

  hold(opened.presence);
  return {
    async revive() {
      for (;;) {
        if (left !== undefined)
          throw new CarillonError("STOPPED", "This embedded store was released.", { hint: "Open it again." });
        if (presence !== undefined && (await presence.alive(stopped.signal))) return;
        // Checked again in a loop: `bringBack` may have joined an earlier attempt, whose server has ended since.
        await bringBack();
      }
    },
    release() {
      left ??= leave();
      return left;
    },
  };
}

/** A signal that never aborts: no time limit is needed, because a running server either answers or ends. */
const patient = new AbortController().signal;
