import { CarillonError } from "./errors.ts";

/** Levenshtein distance, given up at `most`. */
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

/** A longer word is no mistyped name, and comparing it would take long. */
const longestWord = 100;

/** The number of letters that two words must begin with to be taken for forms of one word: "retries", "retry". */
const stem = 3;

/** The nearest of `among`. The case of letters only decides between two that are equally near. "": none is near. */
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

/** `; did you mean "retry"?`, or nothing where no name is near. */
export function meant(word: string, among: readonly string[]): string {
  const one = nearest(word, among);
  return one === "" ? "" : `; did you mean ${JSON.stringify(one)}?`;
}

/** @param path of what has them, as the caller wrote it @throws OPTION_INVALID */
export function checkNames(what: string, options: object, known: readonly string[], path = ""): void {
  const unknown = Object.keys(options).find((option) => !known.includes(option));
  if (unknown === undefined) return;
  throw new CarillonError(
    "OPTION_INVALID",
    `${what} has no option ${JSON.stringify(unknown)}${meant(unknown, [...known])}`,
    { hint: `It has ${known.join(", ")}.`, path: path && `${path}.${unknown}` },
  );
}
