import { type Clock, systemClock } from "./clock.ts";
import { type Random, systemRandom } from "./random.ts";
import type { Settings } from "./settings.ts";
import type { Store } from "./store.ts";

/** What a Carillon takes from the world. Tests that own the time give it others (carillon/testing); it runs the same code. */
export interface Surroundings {
  clock: Clock;
  random: Random;
  /** Over what the options come to. */
  settings: Partial<Settings>;
  /** The store that was opened, or one around it. */
  around(store: Store): Promise<Store>;
}

export const realSurroundings: Surroundings = {
  clock: systemClock,
  random: systemRandom,
  settings: {},
  around: async (store) => store,
};
