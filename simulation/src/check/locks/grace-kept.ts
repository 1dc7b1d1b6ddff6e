import { byLock, type Grant, type LockChecker, type LockHistory, type LockViolation } from "../../lock-history.ts";

/** An upper bound of the rate of a process's monotonic clock, relative to the real time. */
const fastestClock = 1 + 5e-4;

/**
 * Checks who gets a grace lock whose holder has vanished. A process of the same owner may take it at any time with a new fence, even before
 * the end of the earlier process was detected; a process of another owner only after the grace period. After a release, no process has to
 * wait.
 */
export const graceKept: LockChecker = {
  invariant: "10: a grace lock's vacancy has one taker, and a grace for all but its owner",
  check(history) {
    for (const [lock, own] of byLock(history.grants.filter(({ graceMs }) => graceMs !== null)))
      for (const [i, next] of own.entries()) {
        const before = own[i - 1];
        const broken = before && (together(before, next, history) ?? clean(before, next, history));
        if (broken) return { what: `${lock}: ${broken}`, atMs: next.givenMs };
      }
    return undefined;
  },
};

type Told = LockViolation["what"] | undefined;

function together(before: Grant, next: Grant, { attempts, slackMs, forgotMs }: LockHistory): Told {
  const forgotten = forgotMs.some((atMs) => atMs >= before.givenMs && atMs <= next.givenMs);
  if (forgotten) return undefined;
  const isSame = next.owner === before.owner;
  const isRestarted = isSame && next.process !== before.process;
  // The reply to the first grant was lost, so the process did not know that it had the lock, and took it again.
  const isUnanswered =
    next.process === before.process &&
    !attempts.some(
      ({ lock, process, fence }) => lock === before.lock && process === before.process && fence === before.fence,
    );
  if (!isRestarted && !isUnanswered && (before.endedMs === null || before.endedMs > next.givenMs + slackMs))
    return `${next.process} was given fence ${next.fence} while ${before.process} had it under ${before.fence}`;
  if (isSame && next.fence <= before.fence)
    return `${next.process} took it back under fence ${next.fence}, and had had ${before.fence}`;
  if (isSame || before.ended !== "vanished") return undefined;
  const graceMs = Math.max(before.graceMs ?? 0, next.graceMs ?? 0);
  const waitedMs = next.givenMs - (before.endedMs as number);
  return waitedMs < graceMs / fastestClock - slackMs
    ? `${next.process} took it ${waitedMs.toFixed(1)} ms after ${before.process} had vanished, within the grace of ${graceMs} ms`
    : undefined;
}

/** Checks the time between a release and the next grant, but only if nothing else could delay the next process. */
function clean(before: Grant, next: Grant, { attempts, calmFromMs, slackMs }: LockHistory): Told {
  const asked = attempts.find(({ lock, fence }) => lock === next.lock && fence === next.fence);
  if (before.ended !== "released" || before.endedMs === null || !asked) return undefined;
  const fromMs = Math.max(before.endedMs, asked.askedMs);
  const graceMs = Math.max(before.graceMs ?? 0, next.graceMs ?? 0);
  const waitedMs = next.givenMs - fromMs;
  return fromMs > calmFromMs && graceMs > slackMs && waitedMs > graceMs * 0.9 + slackMs
    ? `${next.process} waited ${waitedMs.toFixed(0)} ms for what ${before.process} had released`
    : undefined;
}
