/**
 * Lets the command line change the options of a program that it executes. If that program creates and starts its own Carillon or
 * worker, the operator's options must be applied at its creation, because they cannot be applied later.
 */
export class Preset<Options> {
  #decide = (given: Options): Options => given;

  /** While `work` runs, `decide` changes the options of every Carillon or worker that is created. */
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
