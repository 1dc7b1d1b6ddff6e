/**
 * Lets the command line change the options of a program that it runs. A file that makes and starts its own Carillon or worker then gets the
 * operator's options too, which could not be applied later.
 */
export class Preset<Options> {
  #decide = (given: Options): Options => given;

  /** While `work` runs, `decide` changes the options of every Carillon and worker that is made. */
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
