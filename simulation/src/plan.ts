import type { TaskDefinition } from "../../scheduler/src/task.ts";
import { operations } from "./asked.ts";
import { Dice } from "./dice.ts";
import { faults, stalls } from "./faults.ts";
import { following } from "./flow.ts";
import { beatFaults, type LocksPlayed, lockFaults, locksPlayed, lookFaults } from "./locks/plan.ts";
import type { Cut, Weather } from "./network.ts";
import { type Asked, operated } from "./operate.ts";

export { Dice } from "./dice.ts";

/** One thing that is done to the cluster, at a time of the universe. A seed is a list of them and what the dice say after. */
export type Act =
  | { kind: "crash"; node: string; forMs: number }
  | { kind: "restart"; node: string; forMs: number }
  | { kind: "pause"; node: string; forMs: number }
  | { kind: "cut"; node: string; service: "store" | "coordination"; way: Cut; forMs: number }
  /**
   * The same to the next node that begins a run of some length, in the midst of it, or that claims one before its time,
   * between the two, or that gets a lock, while it has it, or that steps an operation, in the midst of the step, or that has
   * a lock and beats, while the answer is on its way, or that sees of a grace lock nothing new, so that it has the answer when the
   * holder's timeout is over by its clock. `edited`: meanwhile its task loses its grace.
   */
  | {
      kind: "strike";
      how: "crash" | "pause" | "cut";
      at: "run" | "claim" | "hold" | "step" | "beat" | "look";
      edited: boolean;
      way: Cut;
      forMs: number;
    }
  | { kind: "weather"; weather: Weather; forMs: number }
  /** Every process stands still, as when their machine does. */
  | { kind: "standstill"; forMs: number }
  | { kind: "store down"; forMs: number }
  /** Its disk stands still: reads are answered, and no commit is. */
  | { kind: "store stalls"; forMs: number }
  | { kind: "coordination down"; forMs: number; wiped: boolean }
  | { kind: "wall"; node: string; stepMs: number }
  | { kind: "store clock"; stepMs: number }
  | { kind: "save"; node: string; task: string; definition: TaskDefinition }
  | { kind: "pause task" | "resume task" | "remove task"; node: string; task: string }
  | { kind: "enqueue"; node: string; task: string; inMs: number; key: string | null; limitKey: string | null }
  | { kind: "cancel"; node: string; run: number }
  | { kind: "begin operation"; node: string; asked: Asked }
  /** The one that was begun last. */
  | { kind: "stop operation"; node: string };

export interface TimedAct {
  readonly atMs: number;
  readonly act: Act;
}

export interface NodePlan {
  readonly name: string;
  readonly scheduler: boolean;
  readonly rate: number;
  readonly baseMs: number;
  readonly wallAheadMs: number;
}

/**
 * What a seed is mostly about. `mixed`: of everything something; `doubt`: processes that are away for about as long as a
 * session lasts, in the midst of runs and of claims; `stops`: pauses, edits and cancellations close to when runs are due;
 * `outage`: all of it stands still for longer than is planned ahead; `night`: crons about the hour in which the clocks are
 * changed; `crowd`: many runs at once for few places; `locks`: no tasks at all, and processes that pass locks around.
 */
export const sorts = ["mixed", "doubt", "stops", "outage", "night", "crowd", "locks"] as const;
export type Sort = (typeof sorts)[number];
/** How often, of so many in all. */
const shares: Readonly<Record<Sort, number>> = {
  mixed: 10,
  doubt: 2,
  stops: 2,
  outage: 2,
  night: 2,
  crowd: 2,
  locks: 0,
};
/** Drawn beside the others. */
const locksShare = 1 / 12;
const drawn: readonly Sort[] = sorts.flatMap((sort) => Array<Sort>(shares[sort]).fill(sort));

/** Everything that a seed decides before it begins. */
export interface Plan {
  readonly seed: number;
  readonly sort: Sort;
  readonly small: boolean;
  readonly nodes: NodePlan[];
  readonly coordination: boolean;
  readonly sessionTimeoutMs: number;
  readonly beatMs: number;
  readonly concurrency: number;
  /** Of its runs, how many take half a minute or more. */
  readonly longRuns: number;
  /** All processes begin at the same moment. */
  readonly together: boolean;
  /** null: none. */
  readonly locks: LocksPlayed | null;
  readonly acts: TimedAct[];
  readonly healMs: number;
  readonly endMs: number;
}

/** After the faults end, everything has to be in order within this. */
export const recoveryMs = 60_000;
/** What is watched after that. */
const watchedMs = 60_000;

/**
 * Most seeds are small: a process or two that plan, one task, a few faults. They cost half of a full one, and find most of
 * what those find: what goes wrong between two goes wrong in few steps.
 */
const smallShare = 0.9;
export const isSmall = (seed: number): boolean => new Dice(seed ^ 0x5a11).chance(smallShare);

export const sortOf = (seed: number): Sort =>
  new Dice(seed ^ 0x10c5).chance(locksShare) ? "locks" : new Dice(seed ^ 0x50f7).one(drawn);

/** Pure: the same seed, the same plan. @param lengthMs virtual time in all @param full no seed is small */
export function planOf(seed: number, lengthMs = 600_000, full = false): Plan {
  const dice = new Dice(seed);
  const sort = sortOf(seed);
  const small = !full && isSmall(seed);
  const healMs = lengthMs - recoveryMs - watchedMs;
  const { schedulers, workers } = small ? fewProcesses(dice, sort) : processes(dice);
  const nodes = Array.from(
    { length: schedulers + workers },
    (_, i): NodePlan => ({
      name: `n${i + 1}`,
      scheduler: i < schedulers,
      rate: 1 + dice.between(-2e-4, 2e-4),
      baseMs: dice.between(1_000, 1e7),
      wallAheadMs: dice.chance(0.3) ? dice.between(-86_400_000, 86_400_000) : dice.between(-500, 500),
    }),
  );
  const names = nodes.map(({ name }) => name);
  const sessionTimeoutMs =
    sort === "doubt" && dice.chance(0.4) ? 6_000 : dice.one([6_000, 12_000, 20_000, 20_000, 20_000, 20_000]);
  const coordination = dice.chance(sort === "doubt" ? 0.2 : sort === "locks" ? 0 : 0.3);
  const locks = sort === "locks" ? locksPlayed(dice) : null;
  const asked = locks ? [] : operations(dice, sort, names, lengthMs - watchedMs, small);
  const acts: TimedAct[] = [
    ...asked,
    ...following(new Dice(seed ^ 0xf0110), names, asked),
    ...operated(new Dice(seed ^ 0x0be5), names, asked, healMs, sessionTimeoutMs),
    ...(locks
      ? [
          ...lockFaults(dice, names, healMs, sessionTimeoutMs, locks.graceMs, small),
          ...beatFaults(new Dice(seed ^ 0xbe02), healMs, sessionTimeoutMs),
          ...(locks.nightly ? lookFaults(new Dice(seed ^ 0x100c5), healMs, sessionTimeoutMs) : []),
        ]
      : [
          ...faults(dice, sort, names, healMs, coordination, sessionTimeoutMs, small),
          ...stalls(new Dice(seed ^ 0x57a11), healMs),
        ]),
  ].sort((a, b) => a.atMs - b.atMs);
  return {
    ...{ seed, sort, small, nodes, coordination, sessionTimeoutMs, locks, acts, healMs, endMs: lengthMs },
    beatMs: sessionTimeoutMs === 6_000 ? 3_500 : sessionTimeoutMs / 2,
    concurrency: dice.one(sort === "crowd" ? [5, 20, 20] : [2, 5, 20]),
    longRuns: sort === "doubt" ? 0.4 : 0.25,
    together: dice.chance(0.5),
  };
}

/** Two that plan show nearly all that more do, for two thirds of the work. */
function processes(dice: Dice): { schedulers: number; workers: number } {
  const schedulers = dice.chance(0.1) ? 3 : 2;
  return { schedulers, workers: schedulers === 2 && dice.chance(0.3) ? 1 : 0 };
}

/** With locks, one would have nobody to pass them to. */
const fewProcesses = (dice: Dice, sort: Sort) =>
  dice.one([
    { schedulers: 2, workers: 0 },
    { schedulers: 2, workers: 0 },
    { schedulers: 1, workers: 1 },
    { schedulers: 1, workers: sort === "locks" ? 1 : 0 },
    { schedulers: 1, workers: sort === "locks" ? 1 : 0 },
  ]);
