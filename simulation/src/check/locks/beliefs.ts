import { byLock, type LockChecker, type LockHistory } from "../../lock-history.ts";

/** The time from the first to the last check of one holding: the process believed for at least this time that it had the lock. */
export interface Belief {
  readonly lock: string;
  readonly permits: number;
  readonly process: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

export function beliefsOf({ looks }: Pick<LockHistory, "looks">): Belief[] {
  const beliefs = new Map<string, { -readonly [Key in keyof Belief]: Belief[Key] }>();
  for (const { lock, permits, process, holding, atMs } of looks) {
    const key = `${lock} ${holding}`;
    const known = beliefs.get(key);
    if (!known) beliefs.set(key, { lock, permits, process, fromMs: atMs, untilMs: atMs });
    else {
      known.fromMs = Math.min(known.fromMs, atMs);
      known.untilMs = Math.max(known.untilMs, atMs);
    }
  }
  return [...beliefs.values()].sort((a, b) => a.fromMs - b.fromMs);
}

export interface Overlap {
  readonly lock: string;
  readonly processes: readonly string[];
  readonly atMs: number;
  readonly forMs: number;
}

/**
 * The periods in which more processes believed that they hold a lock than it has permits. They are always measured, even where they
 * are allowed.
 */
export function overlapsOf(beliefs: readonly Belief[]): Overlap[] {
  const overlaps: Overlap[] = [];
  for (const [lock, own] of byLock(beliefs)) {
    let present: Belief[] = [];
    for (const belief of own) {
      present = present.filter(({ untilMs }) => untilMs >= belief.fromMs);
      present.push(belief);
      if (present.length <= belief.permits) continue;
      const forMs = Math.min(...present.map(({ untilMs }) => untilMs)) - belief.fromMs;
      overlaps.push({ lock, processes: present.map(({ process }) => process), atMs: belief.fromMs, forMs });
    }
  }
  return overlaps;
}

/**
 * If the service keeps what it acknowledged, a belief ends before another's begins: docs/locks.md promises more than invariant 8 requires.
 */
export const beliefsApart: LockChecker = {
  invariant: "8: no more believe that they have a lock than it has permits",
  check(history) {
    if (history.forgotMs.length > 0) return undefined;
    const [first] = overlapsOf(beliefsOf(history));
    return (
      first && {
        what: `${first.lock}: ${first.processes.join(" and ")} all had it at the same time, for ${first.forMs.toFixed(1)} ms or more`,
        atMs: first.atMs,
      }
    );
  },
};
