import { type Random, seeded } from "../../scheduler/src/random.ts";
import { cron, every, type ScheduleSpec } from "../../scheduler/src/schedule.ts";
import { defineTask, type TaskDefinition, type TaskOptions } from "../../scheduler/src/task.ts";
import type { Cut, Weather } from "./network.ts";

/** One thing that is done to the cluster, at a time of the universe. A seed is a list of them and what the dice say after. */
export type Act =
  | { kind: "crash"; node: string; forMs: number }
  | { kind: "restart"; node: string; forMs: number }
  | { kind: "pause"; node: string; forMs: number }
  | { kind: "cut"; node: string; service: "store" | "coordination"; way: Cut; forMs: number }
  /** The same to the next node that begins a run of some length, in the midst of it. */
  | { kind: "strike"; how: "crash" | "pause" | "cut"; way: Cut; forMs: number }
  | { kind: "weather"; weather: Weather; forMs: number }
  /** Every process stands still, as when their machine does. */
  | { kind: "standstill"; forMs: number }
  | { kind: "store down"; forMs: number }
  | { kind: "coordination down"; forMs: number; wiped: boolean }
  | { kind: "wall"; node: string; stepMs: number }
  | { kind: "store clock"; stepMs: number }
  | { kind: "save"; node: string; task: string; definition: TaskDefinition }
  | { kind: "pause task" | "resume task" | "remove task"; node: string; task: string }
  | { kind: "enqueue"; node: string; task: string; inMs: number; key: string | null }
  | { kind: "cancel"; node: string; run: number };

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

/** Everything that a seed decides before it begins. */
export interface Plan {
  readonly seed: number;
  readonly nodes: NodePlan[];
  readonly coordination: boolean;
  readonly sessionTimeoutMs: number;
  readonly beatMs: number;
  readonly concurrency: number;
  /** All processes begin at the same moment. */
  readonly together: boolean;
  readonly acts: TimedAct[];
  readonly healMs: number;
  readonly endMs: number;
}

/** After the faults end, everything has to be in order within this. */
export const recoveryMs = 60_000;
/** What is watched after that. */
const watchedMs = 60_000;

export class Dice {
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = seeded(seed);
  }

  between(least: number, most: number): number {
    return least + this.#random.next() * (most - least);
  }

  whole(least: number, most: number): number {
    return Math.floor(this.between(least, most + 1));
  }

  chance(of: number): boolean {
    return this.#random.next() < of;
  }

  one<T>(of: readonly T[]): T {
    return of[Math.floor(this.#random.next() * of.length)] as T;
  }
}

/** Pure: the same seed, the same plan. @param lengthMs virtual time in all */
export function planOf(seed: number, lengthMs = 600_000): Plan {
  const dice = new Dice(seed);
  const healMs = lengthMs - recoveryMs - watchedMs;
  const schedulers = dice.whole(2, 3);
  const nodes = Array.from(
    { length: schedulers + 1 },
    (_, i): NodePlan => ({
      name: `n${i + 1}`,
      scheduler: i < schedulers,
      rate: 1 + dice.between(-2e-4, 2e-4),
      baseMs: dice.between(1_000, 1e7),
      wallAheadMs: dice.chance(0.3) ? dice.between(-86_400_000, 86_400_000) : dice.between(-500, 500),
    }),
  );
  const names = nodes.map(({ name }) => name);
  const sessionTimeoutMs = dice.one([6_000, 12_000, 12_000, 20_000]);
  const coordination = dice.chance(0.3);
  const acts: TimedAct[] = [
    ...operations(dice, names, lengthMs - watchedMs),
    ...faults(dice, names, healMs, coordination, sessionTimeoutMs),
  ].sort((a, b) => a.atMs - b.atMs);
  return {
    ...{ seed, nodes, coordination, sessionTimeoutMs, acts, healMs, endMs: lengthMs },
    beatMs: sessionTimeoutMs === 6_000 ? 3_500 : sessionTimeoutMs / 2,
    concurrency: dice.one([2, 5, 20]),
    together: dice.chance(0.5),
  };
}

export const taskNames = ["t1", "t2", "t3", "t4", "t5"];

function operations(dice: Dice, nodes: string[], untilMs: number): TimedAct[] {
  const acts: TimedAct[] = [];
  const add = (atMs: number, act: Act) => {
    if (atMs < untilMs) acts.push({ atMs, act });
  };
  let runs = 0;
  for (const task of taskNames.slice(0, dice.whole(2, 4))) {
    let atMs = dice.between(2_000, 60_000);
    // Most tasks keep these through their edits, so that more can be said of them.
    const traits = traitsOf(dice);
    const definition = () => definitionOf(dice, task, dice.chance(0.75) ? traits : traitsOf(dice));
    add(atMs, { kind: "save", node: dice.one(nodes), task, definition: definition() });
    for (let changes = dice.whole(0, 4); changes > 0; changes--) {
      atMs += dice.between(1_000, 150_000);
      const node = dice.one(nodes);
      const what = dice.whole(0, 9);
      if (what < 5) add(atMs, { kind: "save", node, task, definition: definition() });
      else if (what < 7) {
        add(atMs, { kind: "pause task", node, task });
        atMs += dice.between(500, 60_000);
        add(atMs, { kind: "resume task", node: dice.one(nodes), task });
      } else {
        add(atMs, { kind: "remove task", node, task });
        atMs += dice.between(500, 30_000);
        if (dice.chance(0.7)) add(atMs, { kind: "save", node: dice.one(nodes), task, definition: definition() });
      }
    }
  }
  for (let left = dice.whole(2, 12); left > 0; left--) {
    const atMs = dice.between(10_000, untilMs);
    const run = runs++;
    const key = dice.chance(0.4) ? `k${dice.whole(1, 2)}` : null;
    const inMs = dice.chance(0.5) ? 0 : dice.between(0, 90_000);
    add(atMs, { kind: "enqueue", node: dice.one(nodes), task: dice.one(taskNames), inMs, key });
    if (dice.chance(0.5))
      add(atMs + inMs * dice.one([0.5, 1]) + dice.between(0, 12_000), { kind: "cancel", node: dice.one(nodes), run });
  }
  return acts;
}

/** Night in which New York's clocks go on from 2:00 to 3:00, and Lord Howe's, elsewhere in the year, by half an hour. */
export const cronZones = ["UTC", "America/New_York"] as const;

function scheduleOf(dice: Dice): ScheduleSpec {
  const jitter = dice.chance(0.15) ? { jitter: Math.round(dice.between(100, 3_000)) } : {};
  switch (dice.whole(0, 6)) {
    case 0:
      return every(dice.whole(12, 60) * 1_000, jitter);
    case 1:
      return every(dice.whole(5, 40) * 1_000, { mode: "delay" });
    case 2:
      return cron(dice.one(["* * * * *", "*/20 * * * * *", "15,45 * * * * *"]), {
        zone: dice.one(cronZones),
        ...jitter,
      });
    case 3:
      return cron(dice.one(["*/2 2 * * *", "59 1 * * *", "*/2 1-3 * * *", "*/3 3 * * *"]), {
        zone: "America/New_York",
        ...(dice.chance(0.5) ? { gap: dice.one(["skip", "shift"] as const) } : {}),
      });
    case 4:
      return every(dice.whole(15, 60) * 1_000);
    case 5:
      return cron("*/30 * * * * *");
    default:
      return { type: "manual" };
  }
}

type Traits = Pick<TaskOptions, "overlap" | "onWorkerLost" | "grace" | "timeout">;

const traitsOf = (dice: Dice): Traits => ({
  overlap: dice.one(["allow", "allow", "queue", "skip", "replace", { allow: 2 }] as const),
  onWorkerLost: dice.one(["retry", "retry", "fail", "ask"] as const),
  grace: dice.one([0, 1_000, 3_000, 6_000]),
  timeout: dice.chance(0.25) ? dice.whole(2, 15) * 1_000 : null,
});

function definitionOf(dice: Dice, task: string, traits: Traits): TaskDefinition {
  const schedule = scheduleOf(dice);
  const delay = schedule.type === "every" && schedule.mode === "delay";
  const options: TaskOptions = {
    ...traits,
    schedule,
    ...(delay ? { overlap: "queue" as const } : {}),
    misfire: {
      policy: dice.one(["fire_once", "skip", "all"] as const),
      after: dice.one(["2s", "10s", "30s"]),
      ...(dice.chance(0.5) ? { cap: dice.whole(1, 5) } : {}),
    },
    retry: dice.chance(0.4) ? { attempts: dice.whole(2, 4), delay: "1s" } : 1,
    priority: dice.whole(3, 7),
  };
  return defineTask(task, options);
}

function faults(dice: Dice, nodes: string[], untilMs: number, coordination: boolean, timeoutMs: number): TimedAct[] {
  const acts: TimedAct[] = [];
  if (dice.chance(0.05)) return acts; // a day without trouble
  const kinds = [
    ...(["crash", "crash", "restart", "pause", "pause", "cut", "cut", "weather", "weather", "weather"] as const),
    ...(["store down", "standstill", "wall", "store clock"] as const),
    ...(coordination ? (["coordination cut", "coordination cut", "coordination down"] as const) : []),
  ];
  // Each seed has some faults much, and others not at all.
  const chosen = Array.from({ length: dice.whole(1, 4) }, () => dice.one(kinds));
  for (let left = dice.whole(3, 12); left > 0; left--) {
    const atMs = dice.between(5_000, untilMs);
    const node = dice.one(nodes);
    // Shorter than a session lasts, or longer.
    const lengthMs = timeoutMs * (dice.chance(0.4) ? dice.between(0.02, 0.8) : dice.between(0.9, 2.5));
    const forMs = Math.min(lengthMs, untilMs - atMs);
    acts.push({ atMs, act: faultOf(dice, dice.one(chosen), node, forMs) });
  }
  return acts;
}

function faultOf(dice: Dice, kind: string, node: string, forMs: number): Act {
  const way = dice.one(["to", "from", "both", "both"] as const);
  if ((kind === "crash" || kind === "pause" || kind === "cut") && dice.chance(0.6))
    return { kind: "strike", how: kind, way, forMs };
  switch (kind) {
    case "crash":
    case "restart":
    case "pause":
      return { kind, node, forMs };
    case "cut":
      return { kind, node, service: "store", way, forMs };
    case "coordination cut":
      return { kind: "cut", node, service: "coordination", way, forMs };
    case "coordination down":
      return { kind, forMs, wiped: dice.chance(0.4) };
    case "store down":
      return { kind, forMs: dice.chance(0.5) ? forMs : dice.between(20_000, 90_000) };
    case "standstill":
      return { kind, forMs: dice.between(5_000, 90_000) };
    case "wall":
      return { kind, node, stepMs: dice.between(-86_400_000, 86_400_000) };
    case "store clock":
      return { kind, stepMs: dice.between(-3_000, 3_000) };
    default:
      return {
        kind: "weather",
        forMs: forMs * 3,
        weather: {
          ...{ leastMs: 0.1, mostMs: dice.one([2, 20, 100]) },
          ...{ slowChance: dice.one([0, 0.02, 0.2]), slowMostMs: dice.one([500, 3_000]) },
          ...{ replyLost: dice.one([0, 0.05, 0.2, 0.3]), requestLost: dice.one([0, 0.02, 0.1]) },
          ...{ signalLost: dice.one([0, 0.3, 1]), signalDoubled: dice.one([0, 0.3]), signalLate: dice.one([0, 0.3]) },
        },
      };
  }
}
