/**
 * What the command line makes of options: a file that starts its Carillon, or its worker, by itself is then under the
 * operator's options too, which nothing said later could be.
 */
export class Preset<Options> {
  #decide = (given: Options): Options => given;

  /** Until `work` ends, everything is made with what `decide` makes of its options. */
  async during<T>(decide: (given: Options) => Options, work: () => Promise<T>): Promise<T> {
    const before = this.#decide;
    this.#decide = decide;
    try {
      return await work();
    } finally {
      this.#decide = before;
    }
  }

  applied(given: Options): Options {
    return this.#decide(given);
  }
}
