/**
 * Decides which clock is wrong: the store's, or this process's monotonic one. Pure functions; docs/coordination-faults.md has the table of
 * cases.
 */

/** Cluster time is the store's clock plus the shift. */
export interface ClusterClock {
  shiftMs: number;
  /** Rises with each change of the shift. */
  number: number;
  /** Since when the shift is not 0, in cluster time; null: the shift is 0. */
  sinceMs: number | null;
}

/** A comparison of a node's clocks with the store's clock, made at the node's last heartbeat. */
export interface ClockVote {
  sessionId: number;
  beat: number;
  /** The store's clock plus the shift, less the node's cluster time; null: the node does not report it. */
  offMs: number | null;
  /** The store's clock without the shift, less the wall clock of the node's machine; null: not reported. */
  wallOffMs: number | null;
}

export interface ClockVotes extends ClusterClock {
  votes: ClockVote[];
}

/** A difference above this that no round trip explains is a step of a clock, not drift. */
export const stepMs = 500;
/**
 * A node with fewer heartbeats than this at the moment when a step is seen may have started after the step, so its agreement proves
 * nothing.
 */
const experiencedBeats = 3;

/**
 * Returns whether a wall clock agrees with the store's clock rather than with cluster time. @param wallOffMs the store's clock less the
 * wall clock @param shiftMs cluster time less the store's clock
 */
export function wallAgrees(wallOffMs: number, shiftMs: number): boolean {
  const [near, far] = [Math.abs(wallOffMs), Math.abs(wallOffMs + shiftMs)];
  return near < far && near <= Math.max(stepMs, far / 4);
}

export interface SeenStep {
  sessionId: number;
  stepMs: number;
  wallOffMs: number;
  /** The number of beats of each other node when the step was first seen. */
  beats: ReadonlyMap<number, number>;
}

/**
 * Judges a step that a process has seen, by the nodes' reports since then. The process itself counts as a node that saw it.
 * @returns `stepped`: most nodes saw the step, so the store's clock is wrong · `adopt`: the same, and most of their wall clocks agree with
 * the store's new time · `follow`: at least half of the nodes saw no step, so this process's monotonic clock is wrong · undefined: not
 * known yet
 */
export function judgeStep(seen: SeenStep, { votes, shiftMs }: ClockVotes): "stepped" | "adopt" | "follow" | undefined {
  const shiftAfter = shiftMs - seen.stepMs;
  let [total, stepped, agreed] = [1, 1, 0];
  let walls = wallAgrees(seen.wallOffMs, shiftAfter) ? 1 : 0;
  for (const { sessionId, beat, offMs, wallOffMs } of votes) {
    const before = seen.beats.get(sessionId);
    // Nodes that joined after the step have no history to judge by, and nodes of an older version do not report `offMs`.
    if (sessionId === seen.sessionId || before === undefined || offMs === null) continue;
    const within = Math.max(stepMs, Math.abs(seen.stepMs) / 4);
    const [fromStep, fromNone] = [Math.abs(offMs - seen.stepMs), Math.abs(offMs)];
    if (beat > before && fromStep < fromNone && fromStep <= within) {
      stepped++;
      if (wallOffMs !== null && wallAgrees(wallOffMs, shiftAfter)) walls++;
    } else if (before < experiencedBeats) continue;
    // The first beat after `before` may have read the clock before the step and been committed after the step was seen.
    else if (beat > before + 1 && fromNone <= within) agreed++;
    total++;
  }
  if (stepped * 2 > total) return walls * 2 > stepped ? "adopt" : "stepped";
  return agreed * 2 >= total ? "follow" : undefined;
}

/** Used while the store's clock is not followed: returns whether most nodes' wall clocks agree with it by now. */
export function isAdoptable({ votes, shiftMs }: ClockVotes): boolean {
  // A report from before the shift was set does not describe the present relation to the store's clock.
  const agreeing = votes.filter(
    ({ offMs, wallOffMs }) =>
      offMs !== null && Math.abs(offMs) <= stepMs && wallOffMs !== null && wallAgrees(wallOffMs, shiftMs),
  );
  return agreeing.length * 2 > votes.length;
}

/** The new shift that makes up for a step; 0 if the store's clock came back to within 500 ms. */
export function shiftAfter(shiftMs: number, step: number): number {
  const next = shiftMs - step;
  return Math.abs(next) <= stepMs ? 0 : next;
}

/** Processes' readings of cluster time at one moment may differ by less than this, in ms. */
export const timeBackMs = 5_000;

/** Cluster time is behind a time that it had reached: slots planned or accounted for up to that time are still to come. */
export interface TimeBack {
  /** The latest cluster time that was reached. */
  reachedMs: number;
  /** When the first process that noticed this started; null: the store's clock was adopted while processes were running. */
  sinceMs: number | null;
  /** True if an operator has had the tasks replanned since. */
  replanned: boolean;
}

/** How a node reacts if it finds cluster time behind when it starts. `refuse`: it does not start. */
export const clockBacks = ["wait", "refuse"] as const;
export type ClockBack = (typeof clockBacks)[number];

/** The text for a log line or an error. */
export function timeBackText({ reachedMs }: TimeBack, nowMs: number): string {
  const hours = ((reachedMs - nowMs) / 3_600_000).toFixed(2);
  return `cluster time is ${hours} h behind what it has been: what was planned lies ahead, and no slot of before fires until ${new Date(reachedMs).toISOString()}`;
}
