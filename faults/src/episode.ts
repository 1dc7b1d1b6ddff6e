import { setTimeout as pause } from "node:timers/promises";
import { mix } from "../../scheduler/src/base/random.ts";
import { firstViolation } from "../../simulation/src/check/checkers.ts";
import type { History, Violation } from "../../simulation/src/history.ts";
import { Dice } from "../../simulation/src/plan/dice.ts";
import { Cluster, type ClusterOptions } from "./cluster.ts";
import type { Fault, Heal } from "./faults/fault.ts";

/** One fault, or several at the same time. */
export type Strike = readonly Fault[];

export const nameOf = (strike: Strike): string => strike.map(({ name }) => name).join("+");

export interface EpisodePlan extends ClusterOptions {
  readonly strikes: readonly Strike[];
  /** The time without faults before each strike and after the last one, in ms. */
  readonly settleMs: number;
  /** The cluster must recover within this many ms after the end of the faults. */
  readonly recoveryMs: number;
  readonly onStrike?: (strike: Strike, recoveryMs: number | undefined) => void;
}

export interface Episode {
  readonly history: History;
  readonly violation: Violation | undefined;
  readonly recoveries: readonly { readonly strike: Strike; readonly tookMs: number | undefined }[];
  readonly schema: string;
}

const joinMs = 60_000;

/**
 * Starts a cluster, inflicts one strike after the other with a recovery after each, until one has no recovery in time, and then checks
 * the whole history.
 */
export async function play(plan: EpisodePlan): Promise<Episode> {
  const cluster = new Cluster(plan);
  const dice = new Dice(mix(plan.seed, 0xfa17));
  const recoveries: { strike: Strike; tookMs: number | undefined }[] = [];
  try {
    await cluster.begin();
    cluster.healed();
    await cluster.recovered(joinMs);
    for (const strike of plan.strikes) {
      await pause(plan.settleMs);
      const tookMs = await inflict(cluster, strike, dice, plan.recoveryMs);
      recoveries.push({ strike, tookMs });
      plan.onStrike?.(strike, tookMs);
      if (tookMs === undefined) break;
    }
    const history = await cluster.end(plan.settleMs);
    return { history, violation: judge(cluster, history), recoveries, schema: cluster.schema };
  } catch (error) {
    // Print the error before the cluster is closed, because closing may fail too, or may not end.
    process.stderr.write(`${(error as Error).stack}\n`);
    throw error;
  } finally {
    await cluster.close();
  }
}

/** Inflicts all faults of a strike and ends them. @returns the ms until the cluster had recovered; undefined after the time limit */
async function inflict(cluster: Cluster, strike: Strike, dice: Dice, recoveryMs: number): Promise<number | undefined> {
  cluster.happened(`fault ${nameOf(strike)}`);
  const heals: Heal[] = [];
  let leftMs = 0;
  for (const fault of strike) {
    // The fault lasts either shorter or longer than a session.
    const forMs = cluster.sessionTimeoutMs * (dice.chance(0.35) ? dice.between(0.2, 0.8) : dice.between(1.1, 2.2));
    heals.push(await fault.inflict(cluster, dice, forMs));
    if (!fault.momentary) leftMs = Math.max(leftMs, forMs);
    // The next fault begins while this one is still active.
    if (fault !== strike.at(-1)) await pause(dice.between(0, forMs / 2));
  }
  await pause(leftMs);
  for (const heal of heals) await heal();
  cluster.healed();
  return cluster.recovered(recoveryMs);
}

function judge(cluster: Cluster, history: History): Violation | undefined {
  const broken = history.happenings.find(
    ({ what }) => / error (?:unexpected: |.*(?:a service failed|by a bug))/.test(what) && !/disk is full/.test(what),
  );
  const [surprise = broken] = cluster.surprises;
  const violation = firstViolation(history);
  // Whichever failure came first is reported, because later ones, such as a missing recovery, may be its consequences.
  const isFirst = surprise && (violation?.atMs ?? Number.POSITIVE_INFINITY) > surprise.atMs;
  return isFirst ? { invariant: "16: it recovers, and nothing unexpected happens", ...surprise } : violation;
}
