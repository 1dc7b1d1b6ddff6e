/**
 * Records the claims that end in this process while a query for claims waits for the store's answer. The answer was true when the store
 * wrote it, but a run in it (in a list of this session's claims, or in a claim's late reply) may have run and been acknowledged before the
 * answer arrives. If the worker took such a run from the answer, it would start again. A fence is never reused and only rises, so the
 * fences of a claim's answer seldom need a search. Each batch of ends is stored once per open query.
 */
export class EndedMeanwhile {
  readonly #questions = new Set<number[][]>();

  /** @param ask receives a function that returns whether the claim with this fence has ended here since `ask` was called */
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

/** @param batches grows meanwhile; it is searched only when it has a fence at least as high as the requested one */
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
