import type { Dice } from "../../../simulation/src/plan/dice.ts";
import type { Cluster } from "../cluster.ts";

export type Heal = () => Promise<void> | void;

/** One kind of fault. */
export interface Fault {
  readonly name: string;
  /** A description of the effect, for people. */
  readonly what: string;
  /** The fault is possible only with this: any coordination service, a particular one, or the system's `prlimit`. */
  readonly needs?: "service" | "redis" | "zookeeper" | "prlimit";
  /** True if the fault has no duration. */
  readonly momentary?: boolean;
  /** Begins the fault. @param forMs how long it should last @returns ends it */
  inflict(cluster: Cluster, dice: Dice, forMs: number): Promise<Heal>;
}

/** Heals several faults, in the order in which they began. */
export const together =
  (heals: readonly Heal[]): Heal =>
  async () => {
    for (const heal of heals) await heal();
  };
