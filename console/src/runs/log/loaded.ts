import type { LogLine } from "./levels.ts";

/** A contiguous part of a log. */
export interface Loaded {
  lines: LogLine[];
  /** True if the log has lines before (`before`) or after (`after`) these. */
  before: boolean;
  after: boolean;
}

/**
 * The most lines that stay loaded. When lines are added at one end, lines beyond this number are dropped at the other end; they are loaded
 * again when the user scrolls back.
 */
export const keptMost = 100_000;

/** @param more true if the log has lines before the added ones */
export function preceded({ lines, after }: Loaded, added: LogLine[], more: boolean): Loaded {
  const all = [...added, ...lines];
  return { lines: all.slice(0, keptMost), before: more, after: after || all.length > keptMost };
}

/** @param more true if the log has lines after the added ones */
export function followed({ lines, before }: Loaded, added: LogLine[], more: boolean): Loaded {
  const all = byPlace([...lines, ...added], lines.length);
  return { lines: all.slice(-keptMost), before: before || all.length > keptMost, after: more };
}

/** Sorts lines into the server's order if needed. Lines from index `from` on are new and may have arrived out of order. */
function byPlace(lines: LogLine[], from: number): LogLine[] {
  const isLate = lines.some((line, at) => at >= from && at > 0 && inOrder(lines[at - 1] as LogLine, line) > 0);
  return isLate ? lines.sort(inOrder) : lines;
}

function inOrder(a: LogLine, b: LogLine): number {
  const [first, second] = [numbersOf(a), numbersOf(b)];
  const at = first.findIndex((number, i) => number !== second[i]);
  return at < 0 ? 0 : (first[at] as number) - (second[at] as number);
}

/** Parses a line's id, which consists of its time and its position in the store: `1234(5,6)`. */
const numbersOf = ({ id }: LogLine): number[] => id.split(/\D/).slice(0, 3).map(Number);
