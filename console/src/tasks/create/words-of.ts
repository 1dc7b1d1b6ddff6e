/**
 * Splits a command line into words, as a shell would: quotes keep words together, and a backslash outside single quotes keeps the
 * next character. No other character has a meaning, because no shell runs the command.
 * @returns undefined if a quote is not closed
 */
export function wordsOf(line: string): string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const one = line[at] as string;
    if (one === "\\" && quote !== "'" && at + 1 < line.length) word = (word ?? "") + line[++at];
    else if (quote !== "") {
      if (one === quote) quote = "";
      else word += one;
    } else if (one === '"' || one === "'") {
      quote = one;
      word ??= "";
    } else if (/\s/.test(one)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + one;
  }
  if (quote !== "") return undefined;
  return word === undefined ? words : [...words, word];
}

const isBare = (word: string) => /^[\w@%+=:,./-]+$/.test(word);

/** Returns a command line that `wordsOf` splits into these words. */
export const lineOf = (words: readonly string[]): string =>
  words.map((word) => (isBare(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
