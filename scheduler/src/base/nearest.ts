import { CarillonError } from "./errors.ts";

/** Returns the Levenshtein distance of two words, but at most `most`. */
export function editDistance(a: string, b: string, most = 4): number {
  if (Math.abs(a.length - b.length) >= most) return most;
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return Math.min(row[b.length] as number, most);
}

/** Longer words get no suggestion, because a mistyped name is not that long, and the comparison would be slow. */
const longestWord = 100;

/**
 * If a word begins with this many letters of a name, more edits are allowed, as between forms of one word: "retries", "retry".
 */
const stem = 3;

/** Returns the word of `among` that is most similar; "" if none is similar. Letter case only decides between two equally similar words. */
export function nearest(word: string, among: readonly string[]): string {
  if (word.length > longestWord) return "";
  const given = word.toLowerCase();
  const near = among
    .map((one) => {
      const name = one.toLowerCase();
      const few = name.length > stem && given.startsWith(name.slice(0, stem)) ? stem : 2;
      const most = Math.floor(Math.max(few, name.length / 3));
      return { one, most, steps: editDistance(given, name, most + 1) };
    })
    .filter(({ most, steps }) => steps <= most)
    .sort((a, b) => a.steps - b.steps || editDistance(word, a.one) - editDistance(word, b.one));
  return near[0]?.one ?? "";
}

/** Returns `; did you mean "retry"?`, or "" if no word is similar. */
export function meant(word: string, among: readonly string[]): string {
  const one = nearest(word, among);
  return one === "" ? "" : `; did you mean ${JSON.stringify(one)}?`;
}

/** @param path the path of `options` in the caller's notation @throws OPTION_INVALID for a name that is not in `known` */
export function checkNames(what: string, options: object, known: readonly string[], path = ""): void {
  const unknown = Object.keys(options).find((option) => !known.includes(option));
  if (unknown === undefined) return;
  throw new CarillonError(
    "OPTION_INVALID",
    `${what} has no option ${JSON.stringify(unknown)}${meant(unknown, [...known])}`,
    { hint: `It has ${known.join(", ")}.`, path: path && `${path}.${unknown}` },
  );
}
