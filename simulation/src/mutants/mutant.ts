import type { Sort } from "../plan.ts";

/** A bug to plant: a text of one source file, found in it exactly once, and what stands there instead. */
export interface Mutant {
  readonly name: string;
  /** Under scheduler/src. */
  readonly file: string;
  readonly find: string;
  readonly put: string;
  /** The number of the invariant that it breaks. */
  readonly breaks: string;
  /**
   * The sort of seeds that it shows in first, or those with operations, with sessions that a service shows, with doubt of
   * such, or in which the store stalls; each is one that a campaign plays. Without: all.
   */
  readonly play?: Sort | "operations" | "shown" | "coordination" | "stalls";
  /** It shows only where much goes on at once: it is looked for in seeds that are not small. */
  readonly full?: true;
  /** It shows in one of many hundreds: it is looked for in so many times as many. */
  readonly rare?: number;
}
