import type { Violation } from "../../history.ts";
import type { LockChecker, LockHistory } from "../../lock-history.ts";
import { beliefsApart } from "./beliefs.ts";
import { lockFencesRise } from "./fences-rise.ts";
import { locksGoOn } from "./go-on.ts";
import { graceKept } from "./grace-kept.ts";
import { ownSession } from "./own-session.ts";
import { releasedByHolder } from "./released-by-holder.ts";
import { writesFenced } from "./writes-fenced.ts";

/** All checkers of locks, in an order in which the first symptom of a bug is usually found before its consequences. */
export const lockCheckers: readonly LockChecker[] = [
  graceKept,
  lockFencesRise,
  releasedByHolder,
  ownSession,
  beliefsApart,
  writesFenced,
  locksGoOn,
];

export function firstLockViolation(history: LockHistory): Violation | undefined {
  for (const { invariant, check } of lockCheckers) {
    const violation = check(history);
    if (violation) return { ...violation, invariant };
  }
  return undefined;
}
