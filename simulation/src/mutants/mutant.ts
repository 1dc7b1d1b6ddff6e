import type { Sort } from "../plan/act.ts";

/** A replacement of a text that occurs exactly once in one source file. */
export interface Planting {
  /** Under scheduler/src. */
  readonly file: string;
  readonly find: string;
  readonly put: string;
}

/** A bug that is planted on purpose. */
export interface Mutant extends Planting {
  readonly name: string;
  /**
   * A further replacement: it disables a check that would notice the bug and stop all work, or causes a condition that the bug
   * needs to show.
   */
  readonly also?: Planting;
  /** The number of the invariant that the bug violates. */
  readonly breaks: string;
  /**
   * The kind of seeds in which the bug shows soonest: a sort, or seeds with operations, with sessions reported by a coordination
   * service (`shown`), with faults of that service (`coordination`), or with a stalling store. Default: all seeds.
   */
  readonly play?: Sort | "operations" | "shown" | "coordination" | "stalls";
  /** Set if the bug shows only under much concurrency, so that only full seeds are played. */
  readonly full?: true;
}
