/**
 * A set of listeners. If a listener throws, its error becomes an uncaught exception, and the caller continues: the error must not keep a
 * latch from deleting its node, or other listeners from being called.
 */
export class Listeners<Listener> {
  readonly #all = new Set<{ readonly listener: Listener }>();

  /** @returns a function that removes the listener; the same listener may be added twice. */
  add(listener: Listener): () => void {
    const entry = { listener };
    this.#all.add(entry);
    return () => this.#all.delete(entry);
  }

  clear(): void {
    this.#all.clear();
  }

  /** Calls the current listeners. A listener that is removed during this call, before its turn, is not called. */
  tell(call: (listener: Listener) => void): void {
    for (const entry of [...this.#all]) {
      if (!this.#all.has(entry)) continue;
      try {
        call(entry.listener);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
