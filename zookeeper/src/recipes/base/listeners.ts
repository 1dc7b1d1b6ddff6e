/**
 * Those who want to be told. A listener that throws has a fault of its own, which must not keep a latch from deleting
 * its node or another listener from hearing: the fault surfaces as an uncaught exception, apart from our own course.
 */
export class Listeners<Listener> {
  readonly #all = new Set<{ readonly listener: Listener }>();

  /** @returns a function that ends it; the same listener may be added twice. */
  add(listener: Listener): () => void {
    const entry = { listener };
    this.#all.add(entry);
    return () => this.#all.delete(entry);
  }

  clear(): void {
    this.#all.clear();
  }

  /** Tells those that are there now; one that is removed meanwhile is not told any more. */
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
