import type { Trouble } from "./options.ts";

/** The error for a demo that was ended before there was anything to count. */
export class Interrupted extends Error {
  override name = "Interrupted";
}

/** Ctrl-C and similar signals, or an error that ends the demo. It is polled, never thrown into the middle of other work. */
export class Interruption {
  trouble: Trouble | undefined;
  #happened = false;
  #tell: () => void = () => undefined;
  readonly #told = new Promise<void>((resolve) => {
    this.#tell = resolve;
  });

  get happened(): boolean {
    return this.#happened;
  }

  come(trouble?: Trouble): void {
    this.#happened = true;
    this.trouble ??= trouble;
    this.#tell();
  }

  /** @throws Interrupted, or the trouble, if that comes before the promise's end */
  async or<Value>(promise: Promise<Value>): Promise<Value> {
    const told = this.#told.then(() => {
      throw this.trouble ?? new Interrupted("interrupted");
    });
    return Promise.race([promise, told]);
  }
}
