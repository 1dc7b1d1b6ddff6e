/** What was written down of locks for users. Times are those of the history that it is part of. */
export interface LockHistory {
  /** In the order in which the service gave them. */
  readonly grants: readonly Grant[];
  readonly giveUps: readonly GiveUp[];
  readonly looks: readonly Look[];
  /** What a process did to its node, as the service carried it out. */
  readonly acts: readonly Omit<Look, "permits" | "holding">[];
  /** In the order in which they reached what the lock protects. */
  readonly writes: readonly LockWrite[];
  readonly attempts: readonly Attempt[];
  /** From then on nothing is wrong with anything. */
  readonly calmFromMs: number;
  readonly endMs: number;
  /** How much later than it should anything may be done, for want of a processor; and how far from the truth a time may be. */
  readonly slackMs: number;
  /** When the service lost what it had acknowledged, as its documentation allows for. */
  readonly forgotMs: readonly number[];
}

/** A fence that the service gave out, and until when its node was there. */
export interface Grant {
  readonly lock: string;
  readonly fence: number;
  /** A process in one of its lives. */
  readonly process: string;
  /** The name that it keeps over its lives. */
  readonly owner: string;
  /** What its node hangs from. */
  readonly session: string;
  /** Of one that had to wait: since when it has been in line. */
  readonly givenMs: number;
  /** At the service, at the earliest; null: it is there still. */
  endedMs: number | null;
  /** vanished: nobody gave it up. */
  ended: "released" | "vanished" | null;
  /** How long others wait for whoever vanished; null: this is no grace lock. */
  readonly graceMs: number | null;
}

/** A release as it reached the service. */
export interface GiveUp {
  readonly lock: string;
  readonly process: string;
  readonly fence: number;
  readonly atMs: number;
  /** Whether the service says that this did something. */
  readonly changed: boolean;
}

/** A process asked whether it has the lock, and was told that it does. */
export interface Look {
  readonly lock: string;
  readonly permits: number;
  readonly process: string;
  /** What it has in its hand: from one acquisition to its release. */
  readonly holding: string;
  /** Of the node that it takes for its own; null: it says that nobody else can have the lock, and has no node. */
  readonly fence: number | null;
  readonly atMs: number;
}

/** Something under the lock's protection is asked to change. */
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
  /** With or without the lock, or with its process; null: it waits. */
  endedMs: number | null;
  /** null: it was not to be had. */
  fence: number | null;
}

export interface LockViolation {
  readonly what: string;
  readonly atMs?: number;
}

/** One invariant, over one history of locks: what breaks it first. */
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
