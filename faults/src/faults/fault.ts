import type { Dice } from "../../../simulation/src/plan/dice.ts";
import type { Cluster } from "../cluster.ts";

export type Heal = () => Promise<void> | void;

/** One thing that can go wrong. */
export interface Fault {
  readonly name: string;
  /** What it does, for people. */
  readonly what: string;
  /** What has to be there: a coordination service, the one of them that it is about, or the system's `prlimit`. */
  readonly needs?: "service" | "redis" | "zookeeper" | "prlimit";
  /** It is over when it has happened. */
  readonly momentary?: boolean;
  /** Begins it. @param forMs how long it is to last @returns ends it */
  inflict(cluster: Cluster, dice: Dice, forMs: number): Promise<Heal>;
}

/** Of several, in the order in which they were begun. */
export const together =
  (heals: readonly Heal[]): Heal =>
  async () => {
    for (const heal of heals) await heal();
  };
