import { fairWeather, type Weather } from "../world/network.ts";
import type { TimedAct } from "./act.ts";
import type { Dice } from "./dice.ts";
import { awhile, faultOf, type Setting } from "./faults.ts";

/** The locks that a seed plays. */
export interface LocksPlayed {
  readonly ledger: boolean;
  readonly gpu: boolean;
  readonly nightly: boolean;
  /** Grace period of the grace lock, in ms. */
  readonly graceMs: number;
}

export const gpuPermits = 2;

export function locksPlayed(dice: Dice): LocksPlayed {
  const left = dice.one(["ledger", "gpu", "nightly", "nightly", "none"] as const);
  return {
    ledger: left !== "ledger",
    gpu: left !== "gpu" && left !== "none",
    nightly: left !== "nightly" || dice.chance(0.6),
    graceMs: dice.one([3_000, 10_000, 10_000]),
  };
}

/** Returns network conditions under which many messages take longer than the safety margin of sessions. */
const slow = (dice: Dice): Weather => ({
  ...fairWeather,
  mostMs: 20,
  slowChance: dice.one([0.1, 0.3]),
  slowMostMs: dice.one([1_500, 4_900]),
  replyLost: dice.one([0, 0.02]),
});

/**
 * Returns slow network conditions, faults of processes and of the store, steps of clocks, and strikes on processes that hold a lock. Most
 * faults and strikes last for about the session timeout; some last longer by up to 1.5 grace periods.
 */
export function lockFaults(dice: Dice, graceMs: number, setting: Setting): TimedAct[] {
  const { nodes, untilMs, timeoutMs, small } = setting;
  const acts: TimedAct[] = [];
  if (dice.chance(0.4)) acts.push({ atMs: 2_000, act: { kind: "weather", forMs: untilMs, weather: slow(dice) } });
  const kinds = [
    "crash",
    "restart",
    "pause",
    "pause",
    "cut",
    "cut",
    "weather",
    "store down",
    "standstill",
    "store clock",
  ];
  const chosen = Array.from({ length: dice.whole(2, 5) }, () => dice.one(kinds));
  for (let left = small ? dice.whole(4, 8) : dice.whole(8, 18); left > 0; left--) {
    const atMs = dice.between(5_000, untilMs);
    const graced = dice.chance(0.3) ? graceMs * dice.between(0.2, 1.5) : 0;
    // Bugs are most likely when the holder returns at about the time at which other processes take it for dead.
    const sessions = dice.chance(0.5) ? dice.between(0.75, 1.4) : awhile(dice);
    const forMs = Math.min(timeoutMs * sessions + graced, untilMs - atMs);
    const how = dice.one(["crash", "pause", "pause", "cut", "cut"] as const);
    const way = dice.one(["to", "from", "both", "both"] as const);
    const strike = { kind: "strike", how, way, forMs, at: "hold", edited: false } as const;
    const plain = faultOf(dice, dice.one(chosen), dice.one(nodes), forMs);
    acts.push({ atMs, act: dice.chance(0.6) ? strike : plain });
  }
  for (let left = dice.whole(0, 10); left > 0; left--) {
    const stepMs = dice.one([dice.between(-20_000, 20_000), dice.between(-86_400_000, 86_400_000)]);
    acts.push({ atMs: dice.between(5_000, untilMs), act: { kind: "wall", node: dice.one(nodes), stepMs } });
  }
  return acts;
}

/** The share of the seeds with locks that have the faults of `beatFaults`, and the share that have those of `lookFaults`. */
const [beatShare, lookShare] = [0.5, 0.5];

/**
 * Returns strikes that suspend a holder after the store has counted its heartbeat and before the holder receives the reply. The holder
 * resumes shortly before other processes take it for dead, and then receives a reply that is nearly a session timeout old. The strikes use
 * their own random generator.
 */
export function beatFaults(dice: Dice, untilMs: number, timeoutMs: number): TimedAct[] {
  return standStills(dice, untilMs, timeoutMs, "beat", beatShare);
}

/**
 * Returns strikes that suspend a process that waits for a grace lock between the store's reply to its look and the receipt of
 * that reply, for most of the holder's timeout. The holder goes on sending heartbeats meanwhile, but the waiting process sees a
 * heartbeat as old as a dead holder's. The strikes use their own random generator.
 */
export function lookFaults(dice: Dice, untilMs: number, timeoutMs: number): TimedAct[] {
  return standStills(dice, untilMs, timeoutMs, "look", lookShare);
}

function standStills(dice: Dice, untilMs: number, timeoutMs: number, at: "beat" | "look", share: number): TimedAct[] {
  if (!dice.chance(share)) return [];
  return Array.from({ length: dice.whole(2, 4) }, () => {
    const forMs = timeoutMs * dice.between(0.7, 0.97);
    const act = { kind: "strike", how: "pause", way: "both", forMs, at, edited: false } as const;
    return { atMs: dice.between(5_000, untilMs - forMs), act };
  });
}
