import type { Sort } from "../plan/act.ts";

/** A replacement of a text that occurs exactly once in one source file. */
export interface Planting {
  /** Path of the source file below scheduler/src. */
  readonly file: string;
  readonly find: string;
  readonly put: string;
}

/** A bug that is planted on purpose. */
export interface Mutant extends Planting {
  readonly name: string;
  /**
   * A further replacement. It disables a check that would detect the bug and stop all work, or creates a condition without which the bug
   * does not show.
   */
  readonly also?: Planting;
  /** The number of the invariant that the bug violates. */
  readonly breaks: string;
  /**
   * The kind of seeds in which the bug shows soonest: a sort, or seeds with operations, with sessions that a coordination service reports
   * as alive (`shown`), with faults of that service (`coordination`), or with a store that stalls (`stalls`). Default: all seeds.
   */
  readonly play?: Sort | "operations" | "shown" | "coordination" | "stalls";
  /** Set if the bug shows only with much concurrency, so that only full seeds are played, no small ones. */
  readonly full?: true;
}
