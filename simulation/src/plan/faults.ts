import { fairWeather } from "../world/network.ts";
import type { Act, Sort, TimedAct } from "./act.ts";
import { taskNames } from "./asked.ts";
import type { Dice } from "./dice.ts";

const longestStallMs = 25_000;

/** The parts of a plan on which its faults depend. */
export interface Setting {
  readonly nodes: string[];
  /** When all faults have ended, in virtual ms. */
  readonly untilMs: number;
  /** The session timeout, in ms. */
  readonly timeoutMs: number;
  readonly small: boolean;
}

export function faults(dice: Dice, sort: Sort, coordination: boolean, setting: Setting): TimedAct[] {
  const { nodes, untilMs, timeoutMs, small } = setting;
  const acts: TimedAct[] = [];
  if (dice.chance(0.05)) return acts; // a seed without faults
  if (sort === "doubt") return doubt(dice, setting);
  const kinds = [
    ...(["crash", "crash", "restart", "pause", "pause", "cut", "cut", "weather", "weather", "weather"] as const),
    ...(["store down", "standstill", "wall", "store clock"] as const),
    ...(coordination ? (["coordination cut", "coordination cut", "coordination down"] as const) : []),
  ];
  // Each seed has a few kinds of faults often, and no others.
  const chosen: string[] = Array.from({ length: dice.whole(1, 4) }, () => dice.one(kinds));
  if (sort === "outage") chosen.splice(0, chosen.length, "store down", "standstill", "store down", dice.one(kinds));
  if (sort === "stops" && dice.chance(0.7)) return [unheard(dice, untilMs)];
  const [least, most] = small ? [1, 4] : sort === "outage" ? [4, 8] : [3, 12];
  for (let left = dice.whole(least, most); left > 0; left--) {
    const atMs = dice.between(5_000, untilMs);
    const node = dice.one(nodes);
    const forMs = Math.min(timeoutMs * awhile(dice), untilMs - atMs);
    acts.push({ atMs, act: faultOf(dice, dice.one(chosen), node, forMs) });
  }
  return acts;
}

/** Returns bad network conditions without other faults: signals arrive late or are only found by polling, and some statements are slow. */
const unheard = (dice: Dice, untilMs: number): TimedAct => ({
  atMs: 1_000,
  act: {
    kind: "weather",
    forMs: untilMs,
    weather: {
      ...fairWeather,
      mostMs: dice.one([2, 20]),
      slowChance: dice.one([0, 0.05, 0.15]),
      slowMostMs: 800,
      signalLost: dice.one([0.3, 1]),
      signalLate: dice.one([0, 0.5]),
      slotsLate: 0.3,
    },
  },
});

/** Returns stalls of the store's disk. They use their own random generator, so the plans of other seeds do not change. */
export function stalls(dice: Dice, untilMs: number): TimedAct[] {
  if (!dice.chance(1 / 6)) return [];
  return Array.from({ length: dice.whole(1, 3) }, () => {
    const atMs = dice.between(5_000, untilMs - longestStallMs);
    return { atMs, act: { kind: "store stalls", forMs: dice.between(2_000, longestStallMs) } };
  });
}

/**
 * The longest lag of a standby in ms. Processes need not remember operations that were acknowledged longer than this before a
 * failover.
 */
const lagMostMs = 40_000;
/** Time in virtual ms by which all tasks are defined. */
const definedMs = 61_000;

/**
 * Returns one to three replacements of the store by an outdated standby. A process may be away at that time, but for less than a
 * session timeout.
 */
export function behind(dice: Dice, { nodes, untilMs, timeoutMs }: Setting): TimedAct[] {
  const acts: TimedAct[] = [];
  const times = dice.whole(1, 3);
  const apartMs = (untilMs - definedMs) / times;
  for (let n = 0; n < times; n++) {
    const [fromMs, toMs] = [definedMs + n * apartMs, definedMs + (n + 0.75) * apartMs];
    const lagMs = dice.chance(0.2) ? dice.between(0, 200) : dice.between(0, lagMostMs);
    const atMs = dice.between(fromMs + lagMs, toMs);
    acts.push({ atMs: atMs - lagMs, act: { kind: "standby falls behind" } });
    // The outdated standby lacks these enqueues, so they are lost unless processes remember them.
    for (let left = dice.whole(0, 2); left > 0; left--) {
      const [node, task, inMs] = [dice.one(nodes), taskNames[0] as string, dice.one([0, 60_000])];
      const act = { kind: "enqueue", node, task, inMs, key: null, limitKey: null } as const;
      acts.push({ atMs: dice.between(atMs - lagMs, atMs), act });
    }
    const forMs = dice.one([0, dice.between(0, 3_000)]);
    acts.push({ atMs, act: { kind: "store goes back", forMs, numbersAhead: dice.whole(0, 32) } });
    if (dice.chance(0.4)) {
      const how = dice.one(["pause", "cut"] as const);
      const act = faultOf(dice, how, dice.one(nodes), timeoutMs * dice.between(0.05, 0.5));
      acts.push({ atMs: atMs + dice.between(-2_000, 1_000), act });
    }
  }
  if (dice.chance(0.5)) {
    const weather = {
      ...fairWeather,
      mostMs: dice.one([2, 20, 100]),
      slowChance: dice.one([0, 0.02, 0.2]),
      slowMostMs: dice.one([500, 1_500]),
      replyLost: dice.one([0, 0, 0.05]),
      signalLost: dice.one([0, 0.3, 1]),
    };
    acts.push({ atMs: definedMs, act: { kind: "weather", forMs: untilMs - definedMs, weather } });
  }
  return acts;
}

/** Share of the seeds of sort `doubt` that have strikes with the aim `taken back`. */
const takenBackShare = 0.6;

/**
 * Returns strikes with the aim `taken back`: a process returns while it still grants its runs a grace period that their task no longer has.
 * They use their own random generator.
 */
export function takenBackStrikes(dice: Dice, { untilMs, timeoutMs }: Setting): TimedAct[] {
  if (!dice.chance(takenBackShare)) return [];
  return Array.from({ length: dice.whole(1, 3) }, () => {
    const atMs = dice.between(20_000, untilMs * 0.7);
    const way = dice.one(["to", "from", "both", "both"] as const);
    const act = { kind: "strike", how: "cut", at: "run", edited: true, aim: "taken back", way } as const;
    return { atMs, act: { ...act, forMs: timeoutMs * 2 } };
  });
}

/** The probability that `serviceStrikes` returns faults for a seed; it is called only for seeds with a coordination service. */
const serviceShare = 0.7;

/**
 * Returns strikes at two moments: when the coordination service's last report of a session expires, and when the service reports a session
 * again after a gap. They use their own random generator.
 */
export function serviceStrikes(dice: Dice, { untilMs, timeoutMs }: Setting): TimedAct[] {
  if (!dice.chance(serviceShare)) return [];
  return Array.from({ length: dice.whole(1, 4) }, () => {
    const atMs = dice.between(5_000, untilMs / 2);
    const aim = dice.one(["word ends", "shown again"] as const);
    const how = aim === "word ends" ? "cut" : "pause";
    const forMs = timeoutMs * (aim === "word ends" ? dice.between(1.1, 2) : 2.5);
    return { atMs, act: { kind: "strike", how, at: "run", edited: false, aim, way: "both", forMs } };
  });
}

/** Returns a random duration in session timeouts: either less than 0.8 of one, or from about one to 2.5. */
export const awhile = (dice: Dice) => (dice.chance(0.4) ? dice.between(0.02, 0.8) : dice.between(0.9, 2.5));

/** Returns faults that take processes away while they have claims; they return about when other processes take them for dead. */
function doubt(dice: Dice, { nodes, untilMs, timeoutMs, small }: Setting): TimedAct[] {
  const acts: TimedAct[] = [];
  const slow = dice.chance(0.5);
  if (slow)
    acts.push({
      atMs: 5_000,
      act: {
        kind: "weather",
        forMs: untilMs,
        weather: {
          ...fairWeather,
          mostMs: 20,
          slowChance: dice.one([0.15, 0.4]),
          slowMostMs: 3_000,
          signalLost: dice.one([0, 0.3]),
        },
      },
    });
  for (let left = small ? dice.whole(3, 6) : dice.whole(8, 14); left > 0; left--) {
    const atMs = dice.between(20_000, untilMs);
    const how = dice.one(["pause", "pause", "cut", "cut", "cut", "crash"] as const);
    const way = dice.one(["to", "from", "both", "both"] as const);
    const at = dice.one(["run", "claim"] as const);
    const edited = at === "run" && how === "cut" && dice.chance(0.6);
    const isLong = how === "cut" && !edited && dice.chance(0.4);
    const [least, most] = isLong ? [2, 4] : edited ? [1.05, 1.5] : at === "claim" ? [0.6, 1.6] : [0.9, 1.6];
    const sessions = dice.between(least, most);
    const forMs = Math.min(timeoutMs * sessions, untilMs - atMs);
    const strike = { kind: "strike", how, way, forMs, at, edited } as const;
    const plain = faultOf(dice, how, dice.one(nodes), forMs);
    acts.push({ atMs, act: dice.chance(0.7) ? strike : plain });
  }
  return acts;
}

export function faultOf(dice: Dice, kind: string, node: string, forMs: number): Act {
  const way = dice.one(["to", "from", "both", "both"] as const);
  if ((kind === "crash" || kind === "pause" || kind === "cut") && dice.chance(0.6))
    return {
      kind: "strike",
      how: kind,
      at: dice.one(["run", "run", "claim"] as const),
      edited: dice.chance(0.15),
      way,
      forMs,
    };
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
          leastMs: 0.1,
          mostMs: dice.one([2, 20, 100]),
          slowChance: dice.one([0, 0.02, 0.2]),
          slowMostMs: dice.one([500, 3_000]),
          replyLost: dice.one([0, 0.05, 0.2, 0.3]),
          requestLost: dice.one([0, 0.02, 0.1]),
          signalLost: dice.one([0, 0.3, 1]),
          signalDoubled: dice.one([0, 0.3]),
          signalLate: dice.one([0, 0.3]),
          slotsLate: 0,
        },
      };
  }
}
