import type fc from "fast-check";

/** A reader of foreign input: its inputs, and the properties that must hold. */
export interface Target<Input = unknown> {
  readonly name: string;
  /** The target's share of a run's inputs; 1 is the default of the others. */
  readonly share: number;
  readonly inputs: fc.Arbitrary<Input>;
  /**
   * Feeds it one input. An expected failure is caught here (`expected.ts`); any error that it throws is a bug, and so is an answer that
   * does not come within a second.
   */
  readonly feed: (input: Input) => void | Promise<void>;
  /** For an input that can be made longer: the cost of its text, with a part repeated, must not grow faster than its length. */
  readonly grown?: { readonly corpus: readonly string[]; readonly most: number; readonly feed: (text: string) => void };
  /** Longest time of an answer, for a target that waits; default a second. */
  readonly withinMs?: number;
  /** Starts what the first input needs, such as a server. Resolves with the function that stops it. */
  readonly open?: () => Promise<() => Promise<void>>;
}

/** Lets targets of all kinds of input fit in one list. */
export const target = <Input>(one: Target<Input>): Target => one as unknown as Target;
