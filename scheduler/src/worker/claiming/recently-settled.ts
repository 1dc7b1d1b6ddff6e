/**
 * Records the claims that end in this process while a query for claims waits for the store's reply. A run in the reply may have run and
 * been acknowledged before the reply arrives; without this record the worker would start the run again. Such a run can be in a list of this
 * session's claims or in the late reply to a claim. Fences only rise and are never reused, so new claims seldom need a search: their fences
 * are above every recorded fence. Each batch of ended claims is stored once per open query.
 */
export class RecentlySettled {
  readonly #questions = new Set<number[][]>();

  /**
   * @param ask sends the query; its argument is a function that returns whether the claim with a given fence has ended since `ask` was
   * called
   */
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

/**
 * Returns a function that tests whether a fence is in `batches`. `batches` may grow between calls; it is searched only if it contains a
 * fence at least as high as the given one.
 */
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
