/**
 * Decides which clock is wrong after a step: the store's clock, or this process's monotonic clock. Pure functions;
 * docs/coordination/coordination-faults.md has a table of all cases.
 */

/** The correction of the store's clock: cluster time is the store's clock plus `shiftMs`. */
export interface ClusterClock {
  shiftMs: number;
  /** A version number that increases with each change of `shiftMs`. */
  number: number;
  /** The cluster time since which `shiftMs` has not been 0; null while it is 0. */
  sinceMs: number | null;
}

/** A comparison of a node's clocks with the store's clock, made at the node's last heartbeat. */
export interface ClockVote {
  sessionId: number;
  beat: number;
  /** The store's clock plus the shift, minus the node's cluster time; null if the node does not report it. */
  offMs: number | null;
  /** The store's clock without the shift, minus the wall clock of the node's machine; null if the node does not report it. */
  wallOffMs: number | null;
}

export interface ClockVotes extends ClusterClock {
  votes: ClockVote[];
}

/** A difference in ms above this value, if no network round trip explains it, is a step of a clock and not drift. */
export const stepMs = 500;
/**
 * A node that had fewer heartbeats than this when the step was seen may have started after the step, so it does not count as a
 * node that saw no step.
 */
const experiencedBeats = 3;

/**
 * True if a wall clock agrees with the store's clock rather than with cluster time.
 * @param wallOffMs the store's clock minus the wall clock
 * @param shiftMs cluster time minus the store's clock
 */
export function wallAgrees(wallOffMs: number, shiftMs: number): boolean {
  const [near, far] = [Math.abs(wallOffMs), Math.abs(wallOffMs + shiftMs)];
  return near < far && near <= Math.max(stepMs, far / 4);
}

export interface SeenStep {
  sessionId: number;
  stepMs: number;
  wallOffMs: number;
  /** The heartbeat counter of each node, by session, when the step was first seen. */
  beats: ReadonlyMap<number, number>;
}

/**
 * Judges a step that this process has seen, using what the other nodes have reported since then. This process counts as a node that saw it.
 * @returns `stepped`: most nodes saw the step, so the store's clock is wrong · `adopt`: most nodes saw the step, and most of their wall
 * clocks agree with the store's new time · `follow`: at least half of the nodes saw no step, so this process's monotonic clock is wrong ·
 * undefined: too few reports so far
 */
export function judgeStep(seen: SeenStep, { votes, shiftMs }: ClockVotes): "stepped" | "adopt" | "follow" | undefined {
  const shiftAfter = shiftMs - seen.stepMs;
  let [total, stepped, agreed] = [1, 1, 0];
  let walls = wallAgrees(seen.wallOffMs, shiftAfter) ? 1 : 0;
  for (const { sessionId, beat, offMs, wallOffMs } of votes) {
    const before = seen.beats.get(sessionId);
    // A node that joined after the step cannot have seen it, and a node of an older version does not report `offMs`: neither counts.
    if (sessionId === seen.sessionId || before === undefined || offMs === null) continue;
    const within = Math.max(stepMs, Math.abs(seen.stepMs) / 4);
    const [fromStep, fromNone] = [Math.abs(offMs - seen.stepMs), Math.abs(offMs)];
    if (beat > before && fromStep < fromNone && fromStep <= within) {
      stepped++;
      if (wallOffMs !== null && wallAgrees(wallOffMs, shiftAfter)) walls++;
    } else if (before < experiencedBeats) continue;
    // The node's first heartbeat after `before` does not count: it may have read the store's clock before the step and committed
    // afterwards.
    else if (beat > before + 1 && fromNone <= within) agreed++;
    total++;
  }
  if (stepped * 2 > total) return walls * 2 > stepped ? "adopt" : "stepped";
  return agreed * 2 >= total ? "follow" : undefined;
}

/** Used while a shift is in force: true if most nodes' wall clocks now agree with the store's clock, so that the shift can be dropped. */
export function isAdoptable({ votes, shiftMs }: ClockVotes): boolean {
  // `offMs` of a report made before the shift was set exceeds `stepMs`; such a report does not describe the store's clock now.
  const agreeing = votes.filter(
    ({ offMs, wallOffMs }) =>
      offMs !== null && Math.abs(offMs) <= stepMs && wallOffMs !== null && wallAgrees(wallOffMs, shiftMs),
  );
  return agreeing.length * 2 > votes.length;
}

/** Returns the shift that compensates a step of `step` ms; 0 if the store's clock is then within 500 ms of cluster time. */
export function shiftAfter(shiftMs: number, step: number): number {
  const next = shiftMs - step;
  return Math.abs(next) <= stepMs ? 0 : next;
}

/** Two processes that read cluster time at the same moment differ by less than this, in ms; a smaller step back is ignored. */
export const timeBackMs = 5_000;

/** Describes that cluster time has gone back: slots between now and `reachedMs` were planned or recorded already. */
export interface TimeBack {
  /** The highest cluster time that was reached before. */
  reachedMs: number;
  /**
   * The time at which a process first started after cluster time had gone back; null if cluster time went back while processes
   * ran, because the store's clock was adopted.
   */
  sinceMs: number | null;
  /** True if an operator has replanned the tasks since cluster time went back. */
  replanned: boolean;
}

/** How a starting node reacts if cluster time has gone back: `wait` starts and waits, `refuse` does not start. */
export const clockBacks = ["wait", "refuse"] as const;
export type ClockBack = (typeof clockBacks)[number];

/** Describes for a log line or an error by how much cluster time has gone back. */
export function timeBackText({ reachedMs }: TimeBack, nowMs: number): string {
  const hours = ((reachedMs - nowMs) / 3_600_000).toFixed(2);
  return `cluster time is ${hours} h behind what it has been: what was planned lies ahead, and no slot of before fires until ${new Date(reachedMs).toISOString()}`;
}
