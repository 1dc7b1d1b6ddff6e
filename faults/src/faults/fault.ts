import type { Dice } from "../../../simulation/src/plan/dice.ts";
import type { Cluster } from "../cluster.ts";

export type Heal = () => Promise<void> | void;

/** One kind of fault. */
export interface Fault {
  readonly name: string;
  /** Description of the effect, for the report. */
  readonly what: string;
  /** The requirement of the fault: any coordination service, Redis, ZooKeeper, or the command `prlimit`. Undefined: none. */
  readonly needs?: "service" | "redis" | "zookeeper" | "prlimit";
  /** True if the fault is over as soon as it is inflicted. */
  readonly momentary?: boolean;
  /** Begins the fault. @param forMs the duration in ms after which the caller ends it @returns a function that ends the fault */
  inflict(cluster: Cluster, dice: Dice, forMs: number): Promise<Heal>;
}

/** Returns a function that ends several faults, in the order in which they began. */
export const together =
  (heals: readonly Heal[]): Heal =>
  async () => {
    for (const heal of heals) await heal();
  };
