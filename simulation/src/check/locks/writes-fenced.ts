import { byLock, type LockChecker, type LockViolation, type LockWrite } from "../../lock-history.ts";

/**
 * No accepted write has a fence below that of an earlier accepted write: so all writes under one fence come before all writes under the
 * next. And a fence belongs to one process.
 */
export const writesFenced: LockChecker = {
  invariant: "8: no write with a fence below the highest accepted is applied",
  check: ({ writes }) => staleWrite(writes.filter(({ accepted }) => accepted)),
};

/** @param writes the accepted writes, or the writes that would be accepted without a check of fences */
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
