import type { CarillonError } from "../base/errors.ts";
import { type Held, notHeld } from "../cluster/locks.ts";

/** The functions that a driver provides for a held lock. */
export interface Grip {
  /** True if, by this machine's clock, no other process can hold the lock now. */
  sure(): boolean;
  /** Releases the lock. @returns false if it had already been lost, or if the release was not confirmed */
  letGo(): Promise<boolean>;
}

/** A held lock in the form in which users get it; wraps a driver's `Grip`. */
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

  /** Called by the driver when the lock was lost without a release: aborts the signal. */
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
