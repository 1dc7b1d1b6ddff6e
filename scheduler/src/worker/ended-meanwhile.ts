/**
 * What ended here while an answer of the store about claims was on its way. The answer was true when the store wrote it: a
 * run on the book, or in the reply of a claim whose run the book told of sooner, may have been run and acknowledged before
 * it arrives, and taken from it would be started again. Costs a set for each question under way.
 */
export class EndedMeanwhile {
  readonly #questions = new Set<Set<number>>();

  /** @param ask is given the fences that end here until it resolves */
  async during<Answer>(ask: (ended: ReadonlySet<number>) => Promise<Answer>): Promise<Answer> {
    const ended = new Set<number>();
    this.#questions.add(ended);
    try {
      return await ask(ended);
    } finally {
      this.#questions.delete(ended);
    }
  }

  add(fence: number): void {
    for (const ended of this.#questions) ended.add(fence);
  }
}
