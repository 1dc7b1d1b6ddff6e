import { type Clock, systemClock } from "../base/clock.ts";
import { type Random, systemRandom } from "../base/random.ts";
import type { MembershipProvider, MembershipProviderOptions } from "../cluster/membership-provider.ts";
import type { Handler } from "../run/handler.ts";
import type { Store } from "../store/store.ts";
import type { Settings } from "./settings.ts";

/**
 * The external dependencies of a Carillon. Tests that control the time replace these dependencies, and otherwise execute the same code: see
 * carillon/testing.
 */
export interface Surroundings {
  clock: Clock;
  /** The clock by which callers wait for a response. It is a real clock if a test advances `clock` by hand. */
  callersClock: Clock;
  random: Random;
  /** Settings that replace those computed from the options. */
  settings: Partial<Settings>;
  /** Options for opening the store (store/postgres.ts) that replace the defaults: the system's time, and the library pg. */
  postgres: object;
  /** Opens a replacement for the coordination service that the URL names. */
  openProvider?: (options: MembershipProviderOptions & { clock: Clock }) => Promise<MembershipProvider>;
  /** Returns a handler to call instead of the task's own handler; undefined to call the task's own handler. */
  handlerFor?: (task: string) => Handler | undefined;
  /** Called when the number of runs that wait for other runs of their batch changes. @param more the change of this number */
  gathers?: (more: number) => void;
  /** Returns the store to use: the opened store, or a wrapper around it. */
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
