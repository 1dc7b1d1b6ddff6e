import { byLock, type LockChecker, type LockViolation, type LockWrite } from "../../lock-history.ts";

/**
 * Of what was taken, nothing is under a fence below one that was taken before: so what was taken under one fence lies
 * wholly before what was taken under the next. And a fence is one process's.
 */
export const writesFenced: LockChecker = {
  invariant: "8: no write with a fence below the highest accepted is applied",
  check: ({ writes }) => staleWrite(writes.filter(({ accepted }) => accepted)),
};

/** @param writes that were taken, or would be where nobody looks at fences */
export function staleWrite(writes: readonly LockWrite[]): LockViolation | undefined {
  for (const [lock, own] of byLock(writes)) {
    let highest: LockWrite | undefined;
    for (const write of own) {
      const { process, fence, atMs } = write;
      if (highest && fence < highest.fence)
        return {
          what: `${lock}: ${process} wrote under fence ${fence}, after ${highest.process} under fence ${highest.fence}`,
          atMs,
        };
      if (highest && fence === highest.fence && process !== highest.process)
        return { what: `${lock}: ${process} and ${highest.process} both wrote under fence ${fence}`, atMs };
      highest = write;
    }
  }
  return undefined;
}
