import type { Trouble } from "./options.ts";

/** The error of a demo that was interrupted before its counted time began. */
export class Interrupted extends Error {
  override name = "Interrupted";
}

/** Records that Ctrl-C, another signal or an error should end the demo. The demo polls it, or awaits it beside a promise (`or`). */
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

  /** Awaits the promise. @throws Interrupted, or the recorded trouble, if the interruption comes first */
  async or<Value>(promise: Promise<Value>): Promise<Value> {
    const told = this.#told.then(() => {
      throw this.trouble ?? new Interrupted("interrupted");
    });
    return Promise.race([promise, told]);
  }
}
