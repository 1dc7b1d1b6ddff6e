/**
 * What ended here while an answer of the store about claims was on its way. The answer was true when the store wrote it: a
 * run on the book, or in the reply of a claim whose run the book told of sooner, may have been run and acknowledged before
 * it arrives, and taken from it would be started again. Fences rise, so that the answer to a claim is seldom looked at one by
 * one: a batch of ends costs its questions a list.
 */
export class EndedMeanwhile {
  readonly #questions = new Set<number[][]>();

  /** @param ask is given whether a claim, by its fence, has ended here since it was called */
  async during<Answer>(ask: (hasEnded: (fence: number) => boolean) => Promise<Answer>): Promise<Answer> {
    const batches: number[][] = [];
    this.#questions.add(batches);
    try {
      return await ask(endedOf(batches));
    } finally {
      this.#questions.delete(batches);
    }
  }

  add(batch: readonly { readonly fence: number }[]): void {
    if (this.#questions.size === 0) return;
    const fences = batch.map(({ fence }) => fence);
    for (const batches of this.#questions) batches.push(fences);
  }
}

/** @param batches grow; looked at only where one has a fence as high as the one that is asked for */
function endedOf(batches: readonly number[][]): (fence: number) => boolean {
  const known = new Set<number>();
  let [looked, highest] = [0, Number.NEGATIVE_INFINITY];
  return (fence) => {
    for (; looked < batches.length; looked++) {
      for (const ended of batches[looked] as number[]) highest = Math.max(highest, ended);
      known.clear();
    }
    if (fence > highest) return false;
    if (known.size === 0) for (const fences of batches) for (const ended of fences) known.add(ended);
    return known.has(fence);
  };
}
