import { byLock, type LockChecker, type LockHistory } from "../../lock-history.ts";

/**
 * The period from the first to the last check in which a process believed that it had the lock, within one acquisition. The process may
 * have believed it for longer.
 */
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
 * Returns the periods in which more processes believed that they held a lock than it has permits. They are measured for every history, even
 * for one in which they are allowed.
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
 * Checks that no more processes at once believe that they hold a lock than the lock has permits, unless the service has lost acknowledged
 * data. docs/coordination/locks.md promises this, which is more than invariant 8 requires.
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
