import { type Clock, systemClock } from "../base/clock.ts";
import { type Random, systemRandom } from "../base/random.ts";
import type { Witness, WitnessOptions } from "../cluster/witness.ts";
import type { Handler } from "../run/handler.ts";
import type { Store } from "../store/store.ts";
import type { Settings } from "./settings.ts";

/** The external dependencies of a Carillon. Tests that control time replace them (carillon/testing); all other code is the same. */
export interface Surroundings {
  clock: Clock;
  /** The clock by which callers wait for an answer: a real clock if a test moves `clock` by hand. */
  callersClock: Clock;
  random: Random;
  /** Overrides the settings that are computed from the options. */
  settings: Partial<Settings>;
  /** Overrides the options that the store is opened with (store/postgres.ts); default: the system's time, and pg. */
  postgres: object;
  /** Opens a replacement for the coordination service in the URL. */
  openWitness?: (options: WitnessOptions & { clock: Clock }) => Promise<Witness>;
  /** The handler that runs of this task call instead of the task's own; undefined: the task's own. */
  handlerFor?: (task: string) => Handler | undefined;
  /** Called with the change in the number of runs that wait for others of their batch. */
  gathers?: (more: number) => void;
  /** Returns the store to use: the opened one, or a wrapper around it. */
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
