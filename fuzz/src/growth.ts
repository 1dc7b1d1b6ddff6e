/**
 * Checks how the cost of reading grows with the length of the input, a valid text of which one piece is repeated. A text of
 * four times the length may cost up to ten times as much; if the cost grew with the square of the length, it would be sixteen
 * times as much.
 *
 * CPU time is measured instead of elapsed time, because waiting for a CPU or for a garbage collector's thread does not make the
 * code slow. Code that is not compiled yet, and garbage of other code, increase CPU time. They can only increase it, so the short
 * and the long text are read several times in turn, and the lowest time of each counts.
 */
import fc from "fast-check";
import { stackOf } from "./found.ts";
import { spentMs } from "./processor.ts";
import type { Target } from "./target.ts";

export interface Growth {
  readonly what: string;
  readonly input: string;
}

const pumps = 40;
/** A cost below this many ms is accepted, because it cannot be distinguished from the process's other work. */
const worthMs = 60;
const mostTimes = 10;
/** The longest text may take at most this many ms. */
const mostMs = 10_000;
/**
 * From this round on, the costs of the two texts are compared, and a text that takes longer than `mostMs` is reported at once.
 */
const firstRounds = 3;
/** A text that is still too slow after this many rounds is reported. */
const rounds = 9;

/** @param alive called before each reading @returns the first text that costs too much or throws an unintended error; undefined: none */
export function superlinear({ grown }: Pick<Target, "grown">, seed: number, alive: () => void): Growth | undefined {
  if (!grown) return undefined;
  const read = (text: string): void => {
    alive();
    grown.feed(text);
  };
  const drawn = fc.sample(
    fc.record({ text: fc.constantFrom(...grown.corpus), at: fc.nat(100_000), length: fc.integer({ min: 1, max: 20 }) }),
    { seed, numRuns: pumps },
  );
  for (const { text, at: anywhere, length } of drawn) {
    const at = anywhere % (text.length + 1);
    const parts = [text.slice(0, at), text.slice(at, at + length) || " ", text.slice(at + length)] as const;
    const [before, piece, after] = parts.map((part) => JSON.stringify(part));
    const input = `${before} + ${piece}, again and again + ${after}`;
    try {
      const what = costsTooMuch(read, pumped(parts, grown.most / 4), pumped(parts, grown.most));
      if (what) return { what, input };
    } catch (error) {
      return { what: stackOf(error), input };
    }
  }
  return undefined;
}

/** Repeats the middle piece until the text has at least `size` characters. */
export function pumped([before, piece, after]: readonly [string, string, string], size: number): string {
  const rest = size - before.length - piece.length - after.length;
  return before + piece.repeat(Math.ceil(Math.max(0, rest) / piece.length)) + after;
}

/** Compares the cost of two texts, one four times as long as the other. @returns a description if the cost grows too fast */
export function costsTooMuch(read: (text: string) => void, quarter: string, whole: string): string | undefined {
  const cost = (text: string): number => {
    const began = spentMs();
    read(text);
    return spentMs() - began;
  };
  let [quarterMs, wholeMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 1; round <= rounds; round++) {
    wholeMs = Math.min(wholeMs, cost(whole));
    if (wholeMs < worthMs) return undefined;
    quarterMs = Math.min(quarterMs, cost(quarter));
    if (round < firstRounds) continue;
    if (wholeMs > mostMs) break;
    if (wholeMs <= mostTimes * quarterMs) return undefined;
  }
  return `takes ${Math.round(quarterMs)} ms for ${quarter.length} characters and ${Math.round(wholeMs)} ms for ${whole.length}`;
}
