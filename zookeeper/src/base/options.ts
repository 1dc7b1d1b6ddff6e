import { ZooKeeperError } from "./errors.ts";

/** Names of the call options that several recipes share. */
export const callNames: ReadonlySet<string> = new Set(["signal"]);
export const waitNames: ReadonlySet<string> = new Set(["limitMs", "signal"]);

/**
 * Refuses unknown option names. Otherwise a misspelt option would be ignored, and a call could for example create a persistent node
 * instead of an ephemeral one.
 * @param of the call for the message, such as `create /a`
 * @throws OPTION_INVALID if `options` is not an object, or has a name that is not in `names`
 */
export function checkNames(of: string, path: string, options: object, names: ReadonlySet<string>): void {
  if (typeof options !== "object" || options === null) {
    throw new ZooKeeperError("OPTION_INVALID", `${of}: the options are ${options === null ? "null" : typeof options}`, {
      path,
      hint: `give an object: ${[...names].join(", ")}`,
    });
  }
  for (const name in options) {
    if (names.has(name)) continue;
    const near = nearest(name, names);
    throw new ZooKeeperError("OPTION_INVALID", `${of}: there is no option ${JSON.stringify(name).slice(0, 100)}`, {
      path,
      hint: `${near === undefined ? "" : `did you mean ${near}? `}there are ${[...names].join(", ")}`,
    });
  }
}

/** Longer names are not compared with the known ones, because comparing takes long. Every option name is shorter. */
const longestName = 40;

/** The known name with the fewest differing letters from `given`, ignoring case; undefined if too many letters differ. */
function nearest(given: string, names: ReadonlySet<string>): string | undefined {
  if (given.length > longestName) return undefined;
  const near = [...names]
    .map((name) => ({ name, letters: differingLetters(given.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, letters }) => letters < name.length && letters <= Math.max(2, name.length / 3));
  return near.sort((a, b) => a.letters - b.letters)[0]?.name;
}

/** Levenshtein distance. */
function differingLetters(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
