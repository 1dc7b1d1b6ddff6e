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
 * Keeps this process a user of a running server until it is released. The states are *present* (the connection stands), *lost* (the
 * connection broke; one attempt to bring the server up runs at a time, with growing pauses between attempts), and *released*, which is
 * final. Timers and the connection do not keep the process alive; an attempt under way does.
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
    presence?.drop(); // this process may not have noticed yet that the former server died; two presences would count twice
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

  /** One attempt at a time; concurrent callers share it. */
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
        // bringBack itself logs the failure and schedules the next attempt.
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
      // This attempt was given up because of the release, or it failed: the caller of the attempt receives the error.
    });
    for (let last: Presence | string | undefined = presence; ; ) {
      if (last !== undefined && typeof last !== "string" && (await last.leave(place, options.log))) return;
      // The connection broke: another user may be stopping the server, or the server still runs and this was its last user.
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
        // Checked in a loop, because an attempt that was under way may have found a server that has died since.
        await bringBack();
      }
    },
    release() {
      left ??= leave();
      return left;
    },
  };
}

/** Never aborts: a running server either answers or ends. */
const patient = new AbortController().signal;
