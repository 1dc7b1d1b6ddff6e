import { type Sort, sorts, type TimedAct } from "./act.ts";
import { operations } from "./asked.ts";
import { Dice } from "./dice.ts";
import { behind, faults, serviceStrikes, stalls, takenBackStrikes } from "./faults.ts";
import { following } from "./flow.ts";
import { beatFaults, type LocksPlayed, lockFaults, locksPlayed, lookFaults } from "./locks.ts";
import { operated } from "./operate.ts";

export interface NodePlan {
  readonly name: string;
  readonly scheduler: boolean;
  readonly rate: number;
  readonly baseMs: number;
  readonly wallAheadMs: number;
}

/** The relative frequency of each sort. */
const shares: Readonly<Record<Sort, number>> = {
  mixed: 10,
  doubt: 2,
  stops: 2,
  outage: 2,
  night: 2,
  crowd: 2,
  locks: 0,
  behind: 0,
};
/** Shares of the seeds of sort `locks` and of sort `behind`; all other sorts are chosen by `shares`. */
const locksShare = 1 / 12;
const behindShare = 1 / 16;
const drawn: readonly Sort[] = sorts.flatMap((sort) => Array<Sort>(shares[sort]).fill(sort));

/** Everything that a seed determines before the simulation begins. */
export interface Plan {
  readonly seed: number;
  readonly sort: Sort;
  readonly small: boolean;
  readonly nodes: NodePlan[];
  readonly coordination: boolean;
  readonly sessionTimeoutMs: number;
  readonly beatMs: number;
  readonly concurrency: number;
  /** Share of the runs that are long (8 to 35 s). */
  readonly longRuns: number;
  /**
   * The property by which a process notices that the database server has been replaced: "log" for the timeline of the write-ahead
   * log, "start" for the server's start time, which is the only such property of some hosted services.
   */
  readonly timeline: "log" | "start";
  /** True if all processes start at the same moment. */
  readonly together: boolean;
  /** The locks that the seed plays; null if none. */
  readonly locks: LocksPlayed | null;
  readonly acts: TimedAct[];
  readonly healMs: number;
  readonly endMs: number;
}

/** The time in ms within which the cluster must recover after the end of the faults. */
export const recoveryMs = 60_000;
/** How long the cluster is observed after the recovery, in ms. */
const watchedMs = 60_000;

/**
 * The share of small seeds, which have one or two processes, one defined task and few faults. They are faster than full seeds. Many bugs
 * show in them, because a bug between two processes needs few steps.
 */
const smallShare = 0.9;
export const isSmall = (seed: number): boolean => new Dice(seed ^ 0x5a11).chance(smallShare);

export function sortOf(seed: number): Sort {
  if (new Dice(seed ^ 0x10c5).chance(locksShare)) return "locks";
  return new Dice(seed ^ 0xbe417d).chance(behindShare) ? "behind" : new Dice(seed ^ 0x50f7).one(drawn);
}

/**
 * Returns the plan of a seed; the same arguments always give the same plan.
 * @param lengthMs the whole virtual time in ms
 * @param full if true, no seed is small
 */
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
  const setting = { nodes: names, untilMs: healMs, timeoutMs: sessionTimeoutMs, small };
  const acts: TimedAct[] =
    sort === "behind"
      ? [...firstAndEnqueues(asked), ...behind(new Dice(seed ^ 0xbac4), setting)]
      : [
          ...asked,
          ...following(new Dice(seed ^ 0xf0110), names, asked),
          ...operated(new Dice(seed ^ 0x0be5), names, asked, healMs, sessionTimeoutMs),
          ...(locks
            ? [
                ...lockFaults(dice, locks.graceMs, setting),
                ...beatFaults(new Dice(seed ^ 0xbe02), healMs, sessionTimeoutMs),
                ...(locks.nightly ? lookFaults(new Dice(seed ^ 0x100c5), healMs, sessionTimeoutMs) : []),
              ]
            : [
                ...faults(dice, sort, coordination, setting),
                ...(sort === "doubt" ? takenBackStrikes(new Dice(seed ^ 0x7aced), setting) : []),
                ...(coordination ? serviceStrikes(new Dice(seed ^ 0x5e7d1), setting) : []),
                ...stalls(new Dice(seed ^ 0x57a11), healMs),
              ]),
        ];
  acts.sort((a, b) => a.atMs - b.atMs);
  return {
    seed,
    sort,
    small,
    nodes,
    coordination,
    sessionTimeoutMs,
    locks,
    acts,
    healMs,
    endMs: lengthMs,
    beatMs: sessionTimeoutMs === 6_000 ? 3_500 : sessionTimeoutMs / 2,
    concurrency: dice.one(sort === "crowd" ? [5, 20, 20] : [2, 5, 20]),
    longRuns: sort === "doubt" ? 0.4 : 0.25,
    together: dice.chance(0.5),
    timeline: sort === "behind" ? new Dice(seed ^ 0x71e).one(["log", "start"] as const) : "log",
  };
}

/** Returns the first definition of each task, and all enqueues. */
function firstAndEnqueues(asked: readonly TimedAct[]): TimedAct[] {
  const saved = new Set<string>();
  return asked.filter(({ act }) => {
    if (act.kind !== "save") return act.kind === "enqueue";
    const isFirst = !saved.has(act.task);
    saved.add(act.task);
    return isFirst;
  });
}

/** Chooses the number of processes: mostly two schedulers, because a third one makes a seed slower. */
function processes(dice: Dice): { schedulers: number; workers: number } {
  const schedulers = dice.chance(0.1) ? 3 : 2;
  return { schedulers, workers: schedulers === 2 && dice.chance(0.3) ? 1 : 0 };
}

/**
 * Chooses the number of processes of a small seed. With locks there are at least two, so that a lock can pass to another process.
 */
const fewProcesses = (dice: Dice, sort: Sort) =>
  dice.one([
    { schedulers: 2, workers: 0 },
    { schedulers: 2, workers: 0 },
    { schedulers: 1, workers: 1 },
    { schedulers: 1, workers: sort === "locks" ? 1 : 0 },
    { schedulers: 1, workers: sort === "locks" ? 1 : 0 },
  ]);
