/**
 * The cost of longer texts: a part of a good text, repeated. A text of four times the length may cost somewhat more than four times as
 * much, but not sixteen times.
 *
 * CPU time is measured, not the clock: a wait for a processor, or for a garbage collector's thread that has none itself, is not slow code.
 * Code that is not compiled yet, and other code's garbage, cost CPU time too. They only ever add to it, so each text is read several times,
 * the short one and the long one in turn, and the least time of each counts.
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
/** A smaller cost cannot be separated from the process's other work. */
const worthMs = 60;
const mostTimes = 10;
/** For the longest text. */
const mostMs = 10_000;
/** After this many rounds the least is exact enough to accept a text, and a text far too slow need not be read again. */
const firstRounds = 3;
/** After this many rounds it is reported. */
const rounds = 9;

/** @param alive called before each reading @returns the first text that costs too much, or that throws an unintended error */
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

/** The text with its middle piece repeated until it has about that size. */
export function pumped([before, piece, after]: readonly [string, string, string], size: number): string {
  const rest = size - before.length - piece.length - after.length;
  return before + piece.repeat(Math.ceil(Math.max(0, rest) / piece.length)) + after;
}

/** @returns the cost, if it is too high */
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
