import { fairWeather, type Weather } from "../world/network.ts";
import type { TimedAct } from "./act.ts";
import type { Dice } from "./dice.ts";
import { awhile, faultOf, type Setting } from "./faults.ts";

/** The locks that a seed plays. */
export interface LocksPlayed {
  readonly ledger: boolean;
  readonly gpu: boolean;
  readonly nightly: boolean;
  /** Grace of the grace lock. */
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

/** Network weather in which many messages take longer than the sessions' safety margin. */
const slow = (dice: Dice): Weather => ({
  ...fairWeather,
  mostMs: 20,
  slowChance: dice.one([0.1, 0.3]),
  slowMostMs: dice.one([1_500, 4_900]),
  replyLost: dice.one([0, 0.02]),
});

/** Holders are struck while they hold a lock, for about a session's length, or a session's length plus the grace; and clocks jump. */
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
    // Bugs are most likely around the time at which other processes regard the holder as dead.
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

/** Shares of the seeds with locks. */
const [beatShare, lookShare] = [0.5, 0.5];

/**
 * A holder stands still between its beat, as the store has it, and the answer, for nearly as long as it may be silent: it wakes to an
 * answer of that age, shortly before other processes regard it as dead. Drawn with dice of their own.
 */
export function beatFaults(dice: Dice, untilMs: number, timeoutMs: number): TimedAct[] {
  return standStills(dice, untilMs, timeoutMs, "beat", beatShare);
}

/**
 * A process that waits for a grace lock stands still between the store's reply to its look and the receipt of that reply, for most of the
 * time for which the holder may be silent: meanwhile the holder goes on beating, and the waiting process sees a beat as old as a dead
 * holder's. Drawn with dice of their own.
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
