/** Randomness arrives as an argument, so that a seed reproduces it. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
}

export const systemRandom: Random = { next: () => Math.random() };

/** 32-bit mix (murmur3's finaliser): equal input, equal output, on every machine. */
export function mix(a: number, b: number): number {
  let h = (Math.imul(a | 0, 0x9e3779b1) ^ (b | 0)) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** A small seeded generator (mulberry32) for tests and for jitter that every node must compute alike. */
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
