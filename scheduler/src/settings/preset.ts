/**
 * Lets the command line change the options of a program that it runs: a file that starts its own Carillon, or its own worker, is then
 * under the operator's options too. They could not be applied later.
 */
export class Preset<Options> {
  #decide = (given: Options): Options => given;

  /** Until `work` ends, `decide` changes the options of every Carillon and worker that is made. */
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
