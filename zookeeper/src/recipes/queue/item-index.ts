/**
 * An index of item names of a queue, ordered by a sort key; `QueueView` keeps one for waiting items and one for items that wait for a
 * later attempt. A million names take about 30 MB, because a name that can be computed from its rank and sequence number is not stored as
 * text.
 *
 * The index consists of a binary heap over numbered slots, and a hash table (open addressing) from names to slots. The hash table is
 * needed because other consumers delete nodes that are not first in the heap.
 */
import type { ItemName, QueueNames } from "./names.ts";

const firstCapacity = 1_024;

export class ItemIndex {
  readonly #names: QueueNames;
  readonly #rankOf: (item: ItemName) => number;
  #count = 0;
  #ranks = new Float64Array(firstCapacity);
  #sequences = new Uint32Array(firstCapacity);
  /** The index in the heap of each slot. */
  #places = new Uint32Array(firstCapacity);
  /** The used slots in heap order, followed from index `#count` on by the free slots. */
  #heap = Uint32Array.from({ length: firstCapacity }, (_, slot) => slot);
  /** The hash table: slot + 1, or 0 for an empty entry. Its size is twice the capacity, so it is at most half full. */
  #table = new Uint32Array(2 * firstCapacity);
  /** For each slot, the parity (0 or 1) of the listing in which it was last seen. */
  #seen = new Uint8Array(firstCapacity);
  #listing = 0;
  readonly #oddNames = new Map<number, string>();
  readonly #oddSlots = new Map<string, number>();

  /** @param rankOf returns an item's sort key; default: the name's rank */
  constructor(names: QueueNames, rankOf: (item: ItemName) => number = ({ rank }) => rank) {
    this.#names = names;
    this.#rankOf = rankOf;
  }

  get size(): number {
    return this.#count;
  }

  /** The sort key of the first item; Infinity if the index is empty. */
  get firstRank(): number {
    return this.#count === 0 ? Number.POSITIVE_INFINITY : (this.#ranks[this.#heap[0] as number] as number);
  }

  /** Adds a name. @returns true if the name was not in the index */
  add(name: string, item: ItemName): boolean {
    const found = this.#find(name, item);
    if (found >= 0) {
      this.#seen[found] = this.#listing;
      return false;
    }
    if (this.#count === this.#heap.length) this.#grow();
    const slot = this.#heap[this.#count] as number;
    const rank = this.#rankOf(item);
    this.#ranks[slot] = rank;
    this.#sequences[slot] = item.sequence;
    this.#seen[slot] = this.#listing;
    if (this.#regular(name, item)) this.#link(slot);
    else {
      this.#oddNames.set(slot, name);
      this.#oddSlots.set(name, slot);
    }
    this.#up(this.#count++, slot);
    return true;
  }

  /** Removes a name. @returns false if the name was not in the index */
  delete(name: string, item: ItemName): boolean {
    const slot = this.#find(name, item);
    if (slot < 0) return false;
    this.#remove(slot);
    return true;
  }

  /** Removes and returns the first name; undefined if the index is empty. */
  take(): string | undefined {
    if (this.#count === 0) return undefined;
    const slot = this.#heap[0] as number;
    const name = this.#nameOf(slot);
    this.#remove(slot);
    return name;
  }

  /** Begins a listing. `endListing` will remove the names that are not added again until then. */
  beginListing(): void {
    this.#listing ^= 1;
  }

  /** Removes the names that were not added again since `beginListing`. @returns how many names were removed */
  endListing(): number {
    const gone: number[] = [];
    for (let place = 0; place < this.#count; place++) {
      const slot = this.#heap[place] as number;
      if (this.#seen[slot] !== this.#listing) gone.push(slot);
    }
    for (const slot of gone) this.#remove(slot);
    return gone.length;
  }

  #regular(name: string, item: ItemName): boolean {
    return this.#rankOf(item) === item.rank && this.#names.format(item.rank, item.sequence) === name;
  }

  #nameOf(slot: number): string {
    return this.#oddNames.get(slot) ?? this.#names.format(this.#ranks[slot] as number, this.#sequences[slot] as number);
  }

  /** @returns the name's slot, or −1 if the name is not in the index */
  #find(name: string, item: ItemName): number {
    if (!this.#regular(name, item)) return this.#oddSlots.get(name) ?? -1;
    const mask = this.#table.length - 1;
    for (let at = this.#hash(item.rank, item.sequence); ; at = (at + 1) & mask) {
      const slot = (this.#table[at] as number) - 1;
      if (slot < 0) return -1;
      if (this.#sequences[slot] === item.sequence && this.#ranks[slot] === item.rank) return slot;
    }
  }

  #hash(rank: number, sequence: number): number {
    // Spreads items with similar times and numbers over the table, so that they seldom collide.
    let mixed = Math.imul(sequence ^ Math.imul(rank | 0, 0x85ebca6b), 0x9e3779b1);
    mixed ^= mixed >>> 15;
    return Math.imul(mixed, 0x2c1b3c6d) >>> (32 - Math.log2(this.#table.length));
  }

  #link(slot: number): void {
    const mask = this.#table.length - 1;
    let at = this.#hash(this.#ranks[slot] as number, this.#sequences[slot] as number);
    while (this.#table[at] !== 0) at = (at + 1) & mask;
    this.#table[at] = slot + 1;
  }

  /** Removes a slot from the hash table and moves later entries into the gap, so that lookups still find them. */
  #unlink(slot: number): void {
    const mask = this.#table.length - 1;
    let gap = this.#hash(this.#ranks[slot] as number, this.#sequences[slot] as number);
    while (this.#table[gap] !== slot + 1) gap = (gap + 1) & mask;
    for (let at = (gap + 1) & mask; ; at = (at + 1) & mask) {
      const other = (this.#table[at] as number) - 1;
      if (other < 0) break;
      const home = this.#hash(this.#ranks[other] as number, this.#sequences[other] as number);
      if (((at - home) & mask) < ((at - gap) & mask)) continue;
      this.#table[gap] = other + 1;
      gap = at;
    }
    this.#table[gap] = 0;
  }

  #remove(slot: number): void {
    const odd = this.#oddNames.get(slot);
    if (odd === undefined) this.#unlink(slot);
    else {
      this.#oddNames.delete(slot);
      this.#oddSlots.delete(odd);
    }
    const place = this.#places[slot] as number;
    const last = this.#heap[--this.#count] as number;
    this.#heap[this.#count] = slot; // now a free slot
    if (last === slot) return;
    this.#up(place, last);
    this.#down(this.#places[last] as number, last);
  }

  #before(a: number, b: number): boolean {
    const [first, second] = [this.#ranks[a] as number, this.#ranks[b] as number];
    return first < second || (first === second && (this.#sequences[a] as number) < (this.#sequences[b] as number));
  }

  #up(from: number, slot: number): void {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const other = this.#heap[parent] as number;
      if (!this.#before(slot, other)) break;
      this.#put(place, other);
      place = parent;
    }
    this.#put(place, slot);
  }

  #down(from: number, slot: number): void {
    let place = from;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= this.#count) break;
      if (child + 1 < this.#count && this.#before(this.#heap[child + 1] as number, this.#heap[child] as number))
        child++;
      const other = this.#heap[child] as number;
      if (!this.#before(other, slot)) break;
      this.#put(place, other);
      place = child;
    }
    this.#put(place, slot);
  }

  #put(place: number, slot: number): void {
    this.#heap[place] = slot;
    this.#places[slot] = place;
  }

  #grow(): void {
    const before = this.#heap.length;
    const after = 2 * before;
    const grown = <T extends Float64Array | Uint32Array | Uint8Array>(old: T, fresh: T): T => {
      fresh.set(old);
      return fresh;
    };
    this.#ranks = grown(this.#ranks, new Float64Array(after));
    this.#sequences = grown(this.#sequences, new Uint32Array(after));
    this.#places = grown(this.#places, new Uint32Array(after));
    this.#seen = grown(this.#seen, new Uint8Array(after));
    this.#heap = grown(this.#heap, new Uint32Array(after));
    for (let slot = before; slot < after; slot++) this.#heap[slot] = slot;
    this.#table = new Uint32Array(2 * after);
    for (let place = 0; place < this.#count; place++) {
      const slot = this.#heap[place] as number;
      if (!this.#oddNames.has(slot)) this.#link(slot);
    }
  }
}
