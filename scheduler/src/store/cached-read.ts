import type { Clock } from "../base/clock.ts";

/** Caches what a read returns for a time. Callers at the same time share one read, and its error, which is not cached. */
export class CachedRead<Value> {
  readonly #clock: Clock;
  readonly #freshMs: number;
  readonly #read: () => Promise<Value>;
  #cached: { untilMono: number; value: Promise<Value> } | undefined;

  constructor(clock: Clock, freshMs: number, read: () => Promise<Value>) {
    this.#clock = clock;
    this.#freshMs = freshMs;
    this.#read = read;
  }

  /** The next call of `get` reads again. */
  forget(): void {
    this.#cached = undefined;
  }

  get(): Promise<Value> {
    const nowMono = this.#clock.monotonic();
    if (this.#cached && this.#cached.untilMono > nowMono) return this.#cached.value;
    const cached = { untilMono: nowMono + this.#freshMs, value: this.#read() };
    this.#cached = cached;
    cached.value.catch(() => {
      if (this.#cached === cached) this.#cached = undefined;
    });
    return cached.value;
  }
}
