/** The record of locks for users. Times are those of the history that contains it. */
export interface LockHistory {
  /** In the order in which the service granted them. */
  readonly grants: readonly Grant[];
  readonly giveUps: readonly GiveUp[];
  readonly looks: readonly Look[];
  /** Operations of a process on its node, as the service carried them out. */
  readonly acts: readonly Omit<Look, "permits" | "holding">[];
  /** In the order in which they reached the protected resource. */
  readonly writes: readonly LockWrite[];
  readonly attempts: readonly Attempt[];
  /** From this time on everything is in order. */
  readonly calmFromMs: number;
  readonly endMs: number;
  /** How much later than due anything may happen for lack of a processor, and the largest error of a recorded time. */
  readonly slackMs: number;
  /** When the service lost acknowledged state, as its documentation allows. */
  readonly forgotMs: readonly number[];
}

/** A fence that the service gave out, and the end of its node. */
export interface Grant {
  readonly lock: string;
  readonly fence: number;
  /** A process in one of its lives. */
  readonly process: string;
  /** The name that it keeps over its lives. */
  readonly owner: string;
  /** The session that owns its node. */
  readonly session: string;
  /** For a holder that had to wait: when it joined the line. */
  readonly givenMs: number;
  /** The earliest time at the service; null: it still exists. */
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

/** A check by a process whether it has the lock, answered with yes. */
export interface Look {
  readonly lock: string;
  readonly permits: number;
  readonly process: string;
  /** The id of its holding: one acquisition, until its release. */
  readonly holding: string;
  /** Fence of the node that it regards as its own; null: it believes that it has the lock, but has no node. */
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
  /** Ended with or without the lock, or with its process; null: it waits. */
  endedMs: number | null;
  /** null: the lock could not be had. */
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
