/**
 * What longer texts cost: a part of a good text, again and again. Four times as long may cost some more than four times as much, not
 * sixteen times.
 *
 * What counts is the processor's time, not the clock's: whoever waits for a processor, or for a thread that collects garbage and has
 * none itself, is not slow. Code that is not compiled yet, and garbage of others, cost processor's time too. They only ever add to it,
 * so each text is read several times, the short one and the long one in turn, and the least of each counts.
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
/** Less is not told from what the process does besides. */
const worthMs = 60;
const mostTimes = 10;
/** Of the longest text that is made. */
const mostMs = 10_000;
/** After so many the least is near enough to let a text go, and what takes far too long need not be read again. */
const firstRounds = 3;
/** After so many it is told. */
const rounds = 9;

/** @param alive called before each reading @returns the first text whose reading costs too much, or throws what was not meant */
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

/** The piece in the middle so many times that the text is about so long. */
export function pumped([before, piece, after]: readonly [string, string, string], size: number): string {
  const rest = size - before.length - piece.length - after.length;
  return before + piece.repeat(Math.ceil(Math.max(0, rest) / piece.length)) + after;
}

/** @returns what it costs, where that is too much */
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
