import type { CarillonError } from "../base/errors.ts";
import { type Held, notHeld } from "../cluster/locks.ts";

/** A held lock, as its driver implements it. */
export interface Grip {
  /** True if no other process can hold the lock at this moment, by this machine's clock. */
  sure(): boolean;
  /** Releases it to other processes. @returns false if it was already lost */
  letGo(): Promise<boolean>;
}

/** A held lock, as its user sees it. */
export class HeldLock implements Held {
  readonly name: string;
  readonly fence: bigint;
  readonly #title: string;
  readonly #grip: Grip;
  readonly #end = new AbortController();

  /** @param title the name for messages, such as "the lock invoices" */
  constructor(name: string, title: string, fence: bigint, grip: Grip) {
    this.name = name;
    this.fence = fence;
    this.#title = title;
    this.#grip = grip;
  }

  get held(): boolean {
    return !this.#end.signal.aborted && this.#grip.sure();
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  async release(): Promise<boolean> {
    if (this.#end.signal.aborted) return false;
    const wasHeld = this.held;
    this.#finish(notHeld(this.#title, "it was released"));
    return (await this.#grip.letGo()) && wasHeld;
  }

  /** Ends the holding after a loss that the user did not request. */
  lose(why: string, cause?: unknown): void {
    this.#finish(notHeld(this.#title, why, cause));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  #finish(reason: CarillonError): void {
    this.#end.abort(reason);
  }
}
