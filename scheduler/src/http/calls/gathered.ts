interface Waiting<Key, Result> {
  key: Key;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/** The maximum number of concurrent statements; with two, the store executes one while this process reads the result of the other. */
const flightsMost = 2;

/**
 * Batches look-ups. Keys that are requested in the same tick, or while `flightsMost` statements are in progress, share the next statement.
 * A key is never answered by a statement that was sent before the key was requested. Batching pays off because a round trip costs a node
 * more than a row does.
 */
export class Gathered<Key, Result> {
  readonly #send: (keys: Key[]) => Promise<Result[]>;
  readonly #most: number;
  #waiting: Waiting<Key, Result>[] = [];
  #flights = 0;
  #launching = false;

  /**
   * @param send returns the results in the order of the keys; if it rejects, all requests in this batch fail
   * @param most the maximum number of keys in one statement
   */
  constructor(send: (keys: Key[]) => Promise<Result[]>, most: number) {
    this.#send = send;
    this.#most = most;
  }

  ask(key: Key): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, resolve, reject });
      if (this.#launching || this.#flights === flightsMost) return;
      this.#launching = true;
      queueMicrotask(() => {
        this.#launching = false;
        this.#launch();
      });
    });
  }

  #launch(): void {
    if (this.#waiting.length === 0 || this.#flights === flightsMost) return;
    const batch = this.#waiting.splice(0, this.#most);
    this.#flights++;
    this.#send(batch.map(({ key }) => key))
      .then(
        (results) => {
          batch.forEach(({ resolve }, place) => {
            resolve(results[place] as Result);
          });
        },
        (error: unknown) => {
          for (const { reject } of batch) reject(error);
        },
      )
      .finally(() => {
        this.#flights--;
        this.#launch();
      });
  }
}
