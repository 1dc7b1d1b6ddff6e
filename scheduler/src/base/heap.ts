/** A binary min-heap ordered by a numeric key; items with equal keys are popped in no particular order. */
export class Heap<T> {
  readonly #keys: number[] = [];
  readonly #items: T[] = [];

  get size(): number {
    return this.#keys.length;
  }

  /** The smallest key; undefined if the heap is empty. */
  get least(): number | undefined {
    return this.#keys[0];
  }

  push(key: number, item: T): void {
    let at = this.#keys.length;
    this.#keys.push(key);
    this.#items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if ((this.#keys[parent] as number) <= key) break;
      this.#swap(at, parent);
      at = parent;
    }
  }

  /** Removes and returns the item with the smallest key; undefined if the heap is empty. */
  pop(): T | undefined {
    const top = this.#items[0];
    const lastKey = this.#keys.pop();
    const lastItem = this.#items.pop();
    if (lastKey === undefined || this.#keys.length === 0) return top;
    this.#keys[0] = lastKey;
    this.#items[0] = lastItem as T;
    this.#sink();
    return top;
  }

  #sink(): void {
    const size = this.#keys.length;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= size) return;
      const right = left + 1;
      const child = right < size && (this.#keys[right] as number) < (this.#keys[left] as number) ? right : left;
      if ((this.#keys[child] as number) >= (this.#keys[at] as number)) return;
      this.#swap(at, child);
      at = child;
    }
  }

  #swap(a: number, b: number): void {
    const key = this.#keys[a] as number;
    this.#keys[a] = this.#keys[b] as number;
    this.#keys[b] = key;
    const item = this.#items[a] as T;
    this.#items[a] = this.#items[b] as T;
    this.#items[b] = item;
  }
}
