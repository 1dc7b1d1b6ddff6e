import { isZooKeeperError, type ZooKeeperErrorCode } from "../../src/base/errors.ts";

/**
 * How a promise settled: with a value, or with the code of the ZooKeeperError with which it rejected. Any other error is a fault of the
 * client.
 */
export type Outcome<T> = { readonly value: T } | { readonly code: ZooKeeperErrorCode };

/**
 * Promises that a test gets from the client while something fails. `settled` checks that each of them settles, and rejects only with a
 * ZooKeeperError.
 */
export class Promises {
  readonly #hanging = new Map<number, string>();
  readonly #untyped: unknown[] = [];
  #count = 0;
  #wake: () => void = () => undefined;

  /** Number of promises passed to `of` so far. */
  get count(): number {
    return this.#count;
  }

  /** Records a promise. @returns a promise of its outcome, which never rejects */
  async of<T>(what: string, promise: Promise<T>): Promise<Outcome<T>> {
    const id = this.#count++;
    this.#hanging.set(id, what);
    try {
      return { value: await promise };
    } catch (error) {
      if (isZooKeeperError(error)) return { code: error.code };
      this.#untyped.push(error);
      return { code: "UNKNOWN" };
    } finally {
      this.#hanging.delete(id);
      this.#wake();
    }
  }

  /** Waits until all promises have settled. @throws if some do not settle within `limitMs`, or have rejected with another kind of error */
  async settled(limitMs = 60_000): Promise<void> {
    const deadline = performance.now() + limitMs;
    while (this.#hanging.size > 0 && performance.now() < deadline) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 100);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    const hanging = [...this.#hanging.values()];
    if (hanging.length > 0) throw new Error(`${hanging.length} hang after ${limitMs} ms: ${hanging.slice(0, 10)}`);
    if (this.#untyped.length > 0) throw new AggregateError(this.#untyped, "errors without a type");
  }
}
