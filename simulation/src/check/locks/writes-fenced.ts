import { byLock, type LockChecker, type LockViolation, type LockWrite } from "../../lock-history.ts";

/**
 * Checks that no accepted write has a lower fence than an earlier accepted write, so all writes with one fence come before all writes with
 * the next. Checks also that a fence belongs to one process only.
 */
export const writesFenced: LockChecker = {
  invariant: "8: no write with a fence below the highest accepted is applied",
  check: ({ writes }) => staleWrite(writes.filter(({ accepted }) => accepted)),
};

/** Returns the first write with a stale fence. @param writes the accepted writes, or those that a resource without a check would accept */
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
