interface Waiting<Key, Result> {
  key: Key;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/** One is on its way while the next is being read. */
const flightsMost = 2;

/**
 * Batches look-ups: keys requested while statements are under way go together in the next statement. A single key goes at once,
 * and no key is answered by a statement that began before it was requested. A round trip costs a node more than a row does.
 */
export class Gathered<Key, Result> {
  readonly #send: (keys: Key[]) => Promise<Result[]>;
  readonly #most: number;
  #waiting: Waiting<Key, Result>[] = [];
  #flights = 0;
  #launching = false;

  /**
   * @param send answers each key in its place; where it throws, all that travelled together are refused
   * @param most keys a statement
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
