import { byLock, type LockChecker } from "../../lock-history.ts";

/** Longest time in ms for which a process may wait for a lock when there are no faults. */
const boundMs = 45_000;

/**
 * Checks that without faults no process waits for a lock longer than `boundMs`. A grace lock has no queue, so there it is enough
 * that some process gets the lock.
 */
export const locksGoOn: LockChecker = {
  invariant: "16: with everything in order, locks go round",
  check({ attempts, grants, calmFromMs, endMs, slackMs }) {
    const graced = new Set(grants.filter(({ graceMs }) => graceMs !== null).map(({ lock }) => lock));
    for (const [lock, own] of byLock(attempts)) {
      const wentRound = own.some(({ fence, endedMs }) => fence !== null && endedMs !== null && endedMs > calmFromMs);
      for (const { process, askedMs, endedMs } of graced.has(lock) && wentRound ? [] : own) {
        const fromMs = Math.max(askedMs, calmFromMs);
        const waitedMs = (endedMs ?? endMs) - fromMs;
        if (waitedMs > boundMs + slackMs)
          return { what: `${lock}: ${process} waited for it for ${Math.round(waitedMs)} ms`, atMs: fromMs };
      }
    }
    return undefined;
  },
};
