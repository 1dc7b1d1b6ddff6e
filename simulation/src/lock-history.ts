/** The recorded history of the locks that users take. Its times are those of the enclosing history. */
export interface LockHistory {
  /** In the order in which the service granted them. */
  readonly grants: readonly Grant[];
  readonly giveUps: readonly GiveUp[];
  readonly looks: readonly Look[];
  /** Operations of processes on their nodes, as carried out by the service. */
  readonly acts: readonly Omit<Look, "permits" | "holding">[];
  /** In the order in which they reached the protected resource. */
  readonly writes: readonly LockWrite[];
  readonly attempts: readonly Attempt[];
  /** From this time on there are no faults. */
  readonly calmFromMs: number;
  readonly endMs: number;
  /** How many ms later than due any event may happen because the machine is busy, plus the largest error of a recorded time. */
  readonly slackMs: number;
  /** The times at which the service lost acknowledged state, which its documentation allows. */
  readonly forgotMs: readonly number[];
}

/** A fence that the service gave out, and the end of its node. */
export interface Grant {
  readonly lock: string;
  readonly fence: number;
  /** A process in one of its lives. */
  readonly process: string;
  /** The owner's name, which stays the same over the process's lives. */
  readonly owner: string;
  /** The session that owns its node. */
  readonly session: string;
  /** The time of the grant; for a holder that had to wait, the time at which it joined the line. */
  readonly givenMs: number;
  /** The earliest time at which the service may have ended the node; null if it still exists. */
  endedMs: number | null;
  /** vanished: no process released it. */
  ended: "released" | "vanished" | null;
  /** How long other owners wait after the holder vanished; null: this is not a grace lock. */
  readonly graceMs: number | null;
}

/** A release as it reached the service. */
export interface GiveUp {
  readonly lock: string;
  readonly process: string;
  readonly fence: number;
  readonly atMs: number;
  /** Whether the service reports that this changed something. */
  readonly changed: boolean;
}

/** A check in which a process believed that it has the lock. */
export interface Look {
  readonly lock: string;
  readonly permits: number;
  readonly process: string;
  /** The id of the holding, which lasts from one acquisition to its release. */
  readonly holding: string;
  /** The fence of the node that the process regards as its own; null if it believes that it has the lock but has no node. */
  readonly fence: number | null;
  readonly atMs: number;
}

/** A request to change the protected resource. */
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
  /** The time at which the attempt ended, with or without the lock, or with its process; null while it waits. */
  endedMs: number | null;
  /** The fence of the acquired lock; null if the attempt failed. */
  fence: number | null;
}

export interface LockViolation {
  readonly what: string;
  readonly atMs?: number;
}

/** One invariant, checked over one history of locks: returns the first violation. */
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

/** The name of a process in one of its lives, as grants, looks and writes carry it. */
export const processOf = (name: string, life: number): string => `${name} life ${life}`;
