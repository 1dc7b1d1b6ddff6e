/**
 * The queue of the paths that have to be read again. Many paths are read concurrently, but each path by one reading at a time: a path
 * that changes while it is being read is read once more afterwards, however often it changed.
 *
 * `renew` begins a round, in which everything is read because events may be missing. A path that no reading of the round has found does
 * not exist any more when the round ends.
 */
export type Read = (path: string, deep: boolean, round: number) => Promise<void>;

export class Readings {
  readonly #waiting = new Map<string, boolean>();
  /** One iterator that continues where it stopped, because a new iterator would skip all deleted entries first, which is slow. */
  #next = this.#waiting.entries();
  readonly #reading = new Set<string>();
  readonly #most: number;
  #met: Set<string> | undefined = new Set();
  #round = 0;
  #ended = false;
  #error: unknown;
  #wake: () => void = () => undefined;

  /** @param most the largest number of concurrent readings */
  constructor(most: number) {
    this.#most = most;
  }

  /** The number of paths that wait or are being read. */
  get size(): number {
    return this.#waiting.size + this.#reading.size;
  }

  get round(): number {
    return this.#round;
  }

  /** Adds a path to the queue. @param deep also reads the nodes below the path */
  add(path: string, deep: boolean): void {
    this.#waiting.set(path, deep || this.#waiting.get(path) === true);
    this.#wake();
  }

  /** Removes a path from the queue. @returns false if the path is being read: the result may be older than what the caller knows */
  drop(path: string): boolean {
    if (this.#reading.has(path)) return false;
    this.#waiting.delete(path);
    this.#wake();
    return true;
  }

  /** Begins a new round. Readings in progress belong to the old round. */
  renew(): void {
    this.#round += 1;
    this.#met = new Set();
  }

  /** Records that a reading of `round` has found the path. */
  meet(path: string, round: number): void {
    if (round === this.#round) this.#met?.add(path);
  }

  /** Ends the round. @returns those of `paths` that no reading of the round has found; an empty array if no round is open */
  missed(paths: Iterable<string>): string[] {
    const met = this.#met;
    this.#met = undefined;
    return met ? [...paths].filter((path) => !met.has(path)) : [];
  }

  /** Ends `run`: it resolves, or rejects with the error. Only the first call has an effect. */
  end(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#wake();
  }

  /**
   * Reads the waiting paths until `end` is called or a reading fails. It settles only when no reading is in progress any more.
   * @param idle called whenever no path waits or is being read
   */
  async run(read: Read, idle: () => void): Promise<void> {
    const one = async (path: string, deep: boolean) => {
      try {
        await read(path, deep, this.#round);
      } catch (error) {
        this.end(error);
      }
      this.#reading.delete(path);
      this.#wake();
    };
    while (!this.#ended || this.#reading.size > 0) {
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      if (!this.#ended) {
        this.#begin(one);
        if (this.size === 0) idle();
      }
      await woken;
    }
    if (this.#error !== undefined) throw this.#error;
  }

  #begin(one: (path: string, deep: boolean) => Promise<void>): void {
    let again = false;
    while (this.#reading.size < this.#most && this.#waiting.size > 0) {
      const { done, value } = this.#next.next();
      if (done) {
        if (again) return; // all waiting paths are already being read
        again = true;
        this.#next = this.#waiting.entries();
        continue;
      }
      const [path, deep] = value;
      if (this.#reading.has(path)) continue;
      this.#waiting.delete(path);
      this.#reading.add(path);
      void one(path, deep);
    }
  }
}
