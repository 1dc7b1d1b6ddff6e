/** The local times of a rule, with the times of RDATE added and the times of EXDATE removed. */
import { dayMs, type LocalTimes, lowerBound, sortedUnique } from "../local-times.ts";

export class DatedTimes implements LocalTimes {
  readonly #rule: LocalTimes | null;
  readonly #added: readonly number[];
  readonly #left: ReadonlySet<number>;
  readonly #leftDays: ReadonlySet<number>;

  /** @param rule null if there are only the added times @param leftDays day numbers on which all times are excluded */
  constructor(
    rule: LocalTimes | null,
    added: readonly number[],
    left: readonly number[] = [],
    leftDays: readonly number[] = [],
  ) {
    this.#rule = rule;
    this.#added = sortedUnique(added);
    this.#left = new Set(left);
    this.#leftDays = new Set(leftDays);
  }

  nextLocal(local: number): number {
    for (let at = local; ; ) {
      const added = this.#added[lowerBound(this.#added, at)] ?? Number.POSITIVE_INFINITY;
      const next = Math.min(this.#rule?.nextLocal(at) ?? Number.POSITIVE_INFINITY, added);
      const day = Math.floor(next / dayMs);
      if (this.#leftDays.has(day)) at = (day + 1) * dayMs;
      else if (this.#left.has(next)) at = next + 1000;
      else return next;
    }
  }

  previousLocal(local: number): number {
    for (let at = local; ; ) {
      const added = this.#added[lowerBound(this.#added, at + 1) - 1] ?? Number.NEGATIVE_INFINITY;
      const previous = Math.max(this.#rule?.previousLocal(at) ?? Number.NEGATIVE_INFINITY, added);
      const day = Math.floor(previous / dayMs);
      if (this.#leftDays.has(day)) at = day * dayMs - 1000;
      else if (this.#left.has(previous)) at = previous - 1000;
      else return previous;
    }
  }
}
