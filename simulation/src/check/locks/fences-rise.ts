import { byLock, type LockChecker } from "../../lock-history.ts";

/** Checks that a new holder's fence is higher than all earlier fences of the lock, even after the service has lost its data. */
export const lockFencesRise: LockChecker = {
  invariant: "7: fences of a lock rise",
  check({ grants }) {
    for (const [lock, own] of byLock(grants)) {
      let highest: (typeof own)[number] | undefined;
      for (const grant of own) {
        if (highest && grant.fence <= highest.fence)
          return {
            what: `${lock}: ${grant.process} was given fence ${grant.fence}, after ${highest.process} had ${highest.fence}`,
            atMs: grant.givenMs,
          };
        highest = grant;
      }
    }
    return undefined;
  },
};
