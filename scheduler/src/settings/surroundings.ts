import { type Clock, systemClock } from "../base/clock.ts";
import { type Random, systemRandom } from "../base/random.ts";
import type { Witness, WitnessOptions } from "../cluster/witness.ts";
import type { Store } from "../store/store.ts";
import type { Settings } from "./settings.ts";

/** What a Carillon takes from the world. Tests that own the time give it others (carillon/testing); it runs the same code. */
export interface Surroundings {
  clock: Clock;
  /** By which whoever calls it waits for an answer: real where a test moves `clock` by hand. */
  callersClock: Clock;
  random: Random;
  /** Over what the options come to. */
  settings: Partial<Settings>;
  /** Over what the store is opened with (store/postgres.ts); none: it keeps the system's time and takes pg. */
  postgres: object;
  /** In place of the coordination service that the URL names. */
  openWitness?: (options: WitnessOptions & { clock: Clock }) => Promise<Witness>;
  /** The store that was opened, or one around it. */
  around(store: Store): Promise<Store>;
}

export const realSurroundings: Surroundings = {
  clock: systemClock,
  callersClock: systemClock,
  random: systemRandom,
  settings: {},
  postgres: {},
  around: async (store) => store,
};
