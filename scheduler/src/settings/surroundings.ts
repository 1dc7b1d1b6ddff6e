import { type Clock, systemClock } from "../base/clock.ts";
import { type Random, systemRandom } from "../base/random.ts";
import type { Witness, WitnessOptions } from "../cluster/witness.ts";
import type { Handler } from "../run/handler.ts";
import type { Store } from "../store/store.ts";
import type { Settings } from "./settings.ts";

/** The external dependencies of a Carillon. Tests that control the time replace them (carillon/testing); the code is the same. */
export interface Surroundings {
  clock: Clock;
  /** The clock by which callers wait for an answer: the real one if a test moves `clock` by hand. */
  callersClock: Clock;
  random: Random;
  /** Overrides settings that come from the options. */
  settings: Partial<Settings>;
  /** Overrides the options that the store is opened with (store/postgres.ts); default: the system's time, and pg. */
  postgres: object;
  /** Replaces the coordination service that the URL names. */
  openWitness?: (options: WitnessOptions & { clock: Clock }) => Promise<Witness>;
  /** The handler that runs of this task call in place of their own; undefined: their own. */
  handlerFor?: (task: string) => Handler | undefined;
  /** Called when runs begin to wait for others of their batch, or stop to. */
  gathers?: (more: number) => void;
  /** Returns the opened store, or a wrapper around it. */
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
