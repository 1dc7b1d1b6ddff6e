/** A source of random numbers; it is passed as an argument, so that a test can reproduce them from a seed. */
export interface Random {
  /** Returns a number with uniform distribution in [0, 1). */
  next(): number;
}

export const systemRandom: Random = { next: () => Math.random() };

/** Mixes two 32-bit integers to one (murmur3's finaliser); the result depends only on the arguments. */
export function mix(a: number, b: number): number {
  let h = (Math.imul(a | 0, 0x9e3779b1) ^ (b | 0)) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Creates a small generator with a seed (mulberry32), for tests. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = state;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
    },
  };
}
