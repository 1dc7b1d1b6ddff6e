import type fc from "fast-check";

/** Code that reads input from outside: a generator of inputs, and the properties that must hold. */
export interface Target<Input = unknown> {
  readonly name: string;
  /** The relative number of inputs that the target gets; 1 is usual. */
  readonly share: number;
  readonly inputs: fc.Arbitrary<Input>;
  /**
   * Feeds one input to the code under test, and catches expected failures (`expected.ts`). An error that this function throws is a
   * bug, and so is a call that takes longer than `withinMs`.
   */
  readonly feed: (input: Input) => void | Promise<void>;
  /** For texts: the cost of a text in which one piece is repeated, up to `most` characters, must not grow faster than the length. */
  readonly grown?: { readonly corpus: readonly string[]; readonly most: number; readonly feed: (text: string) => void };
  /** The longest time of one `feed` call in ms; default a second. */
  readonly withinMs?: number;
  /** Starts what the target needs, such as a server; called before the first input. Resolves with a function that stops it. */
  readonly open?: () => Promise<() => Promise<void>>;
}

/** Erases the input's type, so that targets with different types of input fit into one list. */
export const target = <Input>(one: Target<Input>): Target => one as unknown as Target;
