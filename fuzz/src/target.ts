import type fc from "fast-check";

/** One thing that reads what others wrote: what it is fed, and what must hold of it. */
export interface Target<Input = unknown> {
  readonly name: string;
  /** Its part of a run's inputs, beside 1 of others. */
  readonly share: number;
  readonly inputs: fc.Arbitrary<Input>;
  /**
   * Feeds it one input. An expected failure is caught here (`expected.ts`); whatever is thrown is a bug, and so is an answer that
   * does not come within a second.
   */
  readonly feed: (input: Input) => void | Promise<void>;
  /** Of an input that can be made longer: its text, repeated in part, must not take more than its length lets it. */
  readonly grown?: { readonly corpus: readonly string[]; readonly most: number; readonly feed: (text: string) => void };
  /** Where waiting belongs to it; default a second. */
  readonly withinMs?: number;
  /** What must stand before the first input: a server. Resolves with what takes it down. */
  readonly open?: () => Promise<() => Promise<void>>;
}

/** So that targets of every kind of input fit in one list. */
export const target = <Input>(one: Target<Input>): Target => one as unknown as Target;
