import { type Random, seeded } from "../../../scheduler/src/base/random.ts";

export class Dice {
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = seeded(seed);
  }

  between(least: number, most: number): number {
    return least + this.#random.next() * (most - least);
  }

  whole(least: number, most: number): number {
    return Math.floor(this.between(least, most + 1));
  }

  chance(of: number): boolean {
    return this.#random.next() < of;
  }

  one<T>(of: readonly T[]): T {
    return of[Math.floor(this.#random.next() * of.length)] as T;
  }
}
