/** The history of the locks that users take. Its times count like those of the history that contains it. */
export interface LockHistory {
  /** The grants, in the order in which the service made them. */
  readonly grants: readonly Grant[];
  readonly giveUps: readonly GiveUp[];
  readonly looks: readonly Look[];
  /** Operations of processes on their own nodes, as the service carried them out. */
  readonly acts: readonly Omit<Look, "permits" | "holding">[];
  /** The writes, in the order in which they reached the protected resource. */
  readonly writes: readonly LockWrite[];
  readonly attempts: readonly Attempt[];
  /** Time from which there are no faults. */
  readonly calmFromMs: number;
  readonly endMs: number;
  /** By how many ms an event may be late because the machine is busy, plus the largest error of a recorded time. */
  readonly slackMs: number;
  /** When the service lost acknowledged data, which its documentation allows. */
  readonly forgotMs: readonly number[];
}

/** A fence that the service has granted, and how the node with this fence ended. */
export interface Grant {
  readonly lock: string;
  readonly fence: number;
  /** The process, with the number of its start: see `processOf`. */
  readonly process: string;
  /** The owner's name, which stays the same when the process restarts. */
  readonly owner: string;
  /** The session that the node belongs to. */
  readonly session: string;
  /** When the fence was granted; for a holder that had to wait, when it joined the queue. */
  readonly givenMs: number;
  /** The earliest time at which the service may have ended the node; null: the node still exists. */
  endedMs: number | null;
  /** "vanished": the node ended, but no process had released it; null: the node still exists. */
  ended: "released" | "vanished" | null;
  /** How long processes of other owners must wait after the holder has vanished, in ms; null: this is not a grace lock. */
  readonly graceMs: number | null;
}

/** A request to release a lock, as it reached the service. */
export interface GiveUp {
  readonly lock: string;
  readonly process: string;
  readonly fence: number;
  readonly atMs: number;
  /** True if the service reported that the request changed something. */
  readonly changed: boolean;
}

/** A moment at which a process checked the lock and believed that it held the lock. */
export interface Look {
  readonly lock: string;
  readonly permits: number;
  readonly process: string;
  /** Id of the acquisition; it stays the same until the release. */
  readonly holding: string;
  /** The fence of the node that the process takes for its own; null: it believes that it holds the lock, but has no node. */
  readonly fence: number | null;
  readonly atMs: number;
}

/** A request to write to the protected resource. */
export interface LockWrite {
  readonly lock: string;
  readonly process: string;
  readonly fence: number;
  readonly atMs: number;
  readonly accepted: boolean;
}

export interface Attempt {
  readonly lock: string;
  readonly process: string;
  readonly askedMs: number;
  /** When the attempt ended, with or without the lock, or because its process ended; null: it still waits. */
  endedMs: number | null;
  /** The fence of the acquired lock; null: the attempt did not acquire it. */
  fence: number | null;
}

export interface LockViolation {
  readonly what: string;
  readonly atMs?: number;
}

/** Checks one invariant on a history of locks. `check` returns the first violation; undefined: none. */
export interface LockChecker {
  readonly invariant: string;
  check(history: LockHistory): LockViolation | undefined;
}

export function byLock<Of extends { readonly lock: string }>(all: readonly Of[]): Map<string, Of[]> {
  const locks = new Map<string, Of[]>();
  for (const one of all) {
    const known = locks.get(one.lock);
    if (known) known.push(one);
    else locks.set(one.lock, [one]);
  }
  return locks;
}

/** Returns the name of a process after its `life`-th start, as it occurs in grants, looks and writes. */
export const processOf = (name: string, life: number): string => `${name} life ${life}`;
