import type { Sort } from "../plan/act.ts";

/** A text of one source file, found in it exactly once, and what stands there instead. */
export interface Planting {
  /** Under scheduler/src. */
  readonly file: string;
  readonly find: string;
  readonly put: string;
}

/** A bug to plant. */
export interface Mutant extends Planting {
  readonly name: string;
  /** Changed with it: what would notice the bug by itself and stop all work, or what must happen for the bug to show. */
  readonly also?: Planting;
  /** The number of the invariant that it breaks. */
  readonly breaks: string;
  /**
   * The sort of seeds that it shows in first, or those with operations, with sessions that a service shows, with doubt of
   * such, or in which the store stalls; each is one that a campaign plays. Without: all.
   */
  readonly play?: Sort | "operations" | "shown" | "coordination" | "stalls";
  /** It shows only where much goes on at once: it is looked for in seeds that are not small. */
  readonly full?: true;
}
