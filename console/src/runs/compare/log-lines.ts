import { bare } from "../log/ansi.ts";
import type { LogLine } from "../log/levels.ts";

/** Numbers and ids, which differ between any two runs. A word with a digit counts as an id. */
const data = /[\p{L}\p{N}_-]*\p{N}[\p{L}\p{N}_-]*/gu;

const wordsOf = ({ level, message }: LogLine): string => `${level} ${bare(message).replace(data, "#").trim()}`;

/**
 * Marks the lines that the other log does not have. Lines are compared by their level and by their message without numbers and ids; a line
 * that one log has more often than the other is marked from the first occurrence on that has no counterpart.
 */
export function alone(lines: readonly LogLine[], others: readonly LogLine[]): boolean[] {
  const left = new Map<string, number>();
  for (const line of others) left.set(wordsOf(line), (left.get(wordsOf(line)) ?? 0) + 1);
  return lines.map((line) => {
    const words = wordsOf(line);
    const n = left.get(words) ?? 0;
    left.set(words, n - 1);
    return n <= 0;
  });
}
