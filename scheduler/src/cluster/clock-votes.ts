/**
 * Which clock is wrong: the store's, or this process's monotonic one. Pure; docs/coordination.md has the table of what happens when.
 */

/** Cluster time is the store's clock plus the shift. */
export interface ClusterClock {
  shiftMs: number;
  /** Rises with each change of the shift. */
  number: number;
  /** Since when the shift is not 0, in cluster time; null: it is 0. */
  sinceMs: number | null;
}

/** What a node's clocks showed beside the store's at its last beat. */
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
/** A node that has not beaten so often when a step is seen may have begun after it, so its agreement proves nothing. */
const experiencedBeats = 3;

/**
 * Whether a wall clock agrees with the store's clock rather than with cluster time. @param wallOffMs the store's clock less the wall
 * clock @param shiftMs cluster time less the store's clock
 */
export function wallAgrees(wallOffMs: number, shiftMs: number): boolean {
  const [near, far] = [Math.abs(wallOffMs), Math.abs(wallOffMs + shiftMs)];
  return near < far && near <= Math.max(stepMs, far / 4);
}

export interface SeenStep {
  sessionId: number;
  stepMs: number;
  wallOffMs: number;
  /** The beats of the other nodes when the step was first seen. */
  beats: ReadonlyMap<number, number>;
}

/**
 * Judges a step that a process has seen, by what the nodes have reported since. The process itself counts as one that saw it.
 *
 * @returns `stepped`: most nodes saw it, so the store's clock is wrong · `adopt`: so they did, and most of their wall clocks agree with
 *   the store's new time · `follow`: at least half saw nothing, so this process's monotonic clock is wrong · undefined: not known yet
 */
export function judgeStep(seen: SeenStep, { votes, shiftMs }: ClockVotes): "stepped" | "adopt" | "follow" | undefined {
  const shiftAfter = shiftMs - seen.stepMs;
  let [total, stepped, agreed] = [1, 1, 0];
  let walls = wallAgrees(seen.wallOffMs, shiftAfter) ? 1 : 0;
  for (const { sessionId, beat, offMs, wallOffMs } of votes) {
    const before = seen.beats.get(sessionId);
    // Those that joined since have no history to judge by; an older version reports nothing.
    if (sessionId === seen.sessionId || before === undefined || offMs === null) continue;
    const within = Math.max(stepMs, Math.abs(seen.stepMs) / 4);
    const [fromStep, fromNone] = [Math.abs(offMs - seen.stepMs), Math.abs(offMs)];
    if (beat > before && fromStep < fromNone && fromStep <= within) {
      stepped++;
      if (wallOffMs !== null && wallAgrees(wallOffMs, shiftAfter)) walls++;
    } else if (before < experiencedBeats) continue;
    // The next beat may have read the clock before the step, and been committed after it was seen.
    else if (beat > before + 1 && fromNone <= within) agreed++;
    total++;
  }
  if (stepped * 2 > total) return walls * 2 > stepped ? "adopt" : "stepped";
  return agreed * 2 >= total ? "follow" : undefined;
}

/** While the store's clock is not followed: whether most nodes' wall clocks agree with it by now. */
export function isAdoptable({ votes, shiftMs }: ClockVotes): boolean {
  // A report from before the shift was set says nothing about the store's clock as it is now.
  const agreeing = votes.filter(
    ({ offMs, wallOffMs }) =>
      offMs !== null && Math.abs(offMs) <= stepMs && wallOffMs !== null && wallAgrees(wallOffMs, shiftMs),
  );
  return agreeing.length * 2 > votes.length;
}

/** The shift that makes up for a step; a store's clock that came back to within 500 ms needs none. */
export function shiftAfter(shiftMs: number, step: number): number {
  const next = shiftMs - step;
  return Math.abs(next) <= stepMs ? 0 : next;
}

/** By less than this the times that processes take at one moment may differ. */
export const timeBackMs = 5_000;

/** Cluster time is behind what it has been: slots that were planned or accounted by then lie ahead. */
export interface TimeBack {
  /** How far it had come. */
  reachedMs: number;
  /** When the first process that saw it so began; null: it was adopted under living processes. */
  sinceMs: number | null;
  /** An operator had the tasks planned anew since. */
  replanned: boolean;
}

/** What a node does that finds it so at its start. `refuse`: it does not start. */
export const clockBacks = ["wait", "refuse"] as const;
export type ClockBack = (typeof clockBacks)[number];

/** For a log and an error. */
export function timeBackText({ reachedMs }: TimeBack, nowMs: number): string {
  const hours = ((reachedMs - nowMs) / 3_600_000).toFixed(2);
  return `cluster time is ${hours} h behind what it has been: what was planned lies ahead, and no slot of before fires until ${new Date(reachedMs).toISOString()}`;
}
