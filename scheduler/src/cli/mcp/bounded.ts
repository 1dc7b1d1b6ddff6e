import { pathTo } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";

/** Fields whose value is a user's JSON of any shape. */
const values = new Set(["payload", "progress", "result", "fields", "was", "is"]);
/** Positions in lists are never cut, because a caller sends them back. */
const whole = new Set(["next", "tail"]);

/** The least factor for the limits: texts then keep some 300 characters, so a name is never cut. */
const leastShare = 1 / 8;

export interface Bounded {
  answer: Record<string, unknown>;
  /** The paths of the values that were cut. */
  cut: string[];
}

/**
 * The answer, at most limits.mcpAnswerCharacters long as JSON. Long texts, users' JSON values and lists are cut, all with the same factor
 * to their own limits. Items of a page are never left out, because the position of the next page is after the last of them.
 */
export function bounded(answer: object): Bounded {
  for (let share = 1; ; share /= 2) {
    const cut: string[] = [];
    const short = shortened(answer, { path: "", name: "", share, cut }) as Record<string, unknown>;
    if (share <= leastShare || JSON.stringify(short).length <= limits.mcpAnswerCharacters)
      return { answer: short, cut };
  }
}

interface Place {
  path: string;
  /** The field that holds the value; "": an item of a list. */
  name: string;
  share: number;
  cut: string[];
}

function shortened(value: unknown, place: Place): unknown {
  const { path, name, share, cut } = place;
  if (typeof value === "string") {
    const most = Math.floor(limits.mcpTextCharacters * share);
    if (value.length <= most || whole.has(path)) return value;
    cut.push(path);
    return `${value.slice(0, most)}… (cut: ${most} of ${value.length} characters)`;
  }
  if (typeof value !== "object" || value === null) return value;
  if (values.has(name) || path.startsWith("definition.") || (name === "error" && share <= leastShare)) {
    const text = JSON.stringify(value);
    const most = Math.floor(limits.mcpValueCharacters * share);
    if (text.length <= most) return value;
    cut.push(path);
    return { cut: true, characters: text.length, begins: text.slice(0, most) };
  }
  if (Array.isArray(value)) {
    const most = path === "items" ? value.length : Math.floor(limits.mcpListItems * share);
    if (value.length > most) cut.push(`${path} (the first ${most} of ${value.length})`);
    return value
      .slice(0, most)
      .map((item, at) => shortened(item, { ...place, path: pathTo(path, `[${at}]`), name: "" }));
  }
  return Object.fromEntries(
    Object.entries(value).map(([field, one]) => [
      field,
      shortened(one, { ...place, path: pathTo(path, field), name: field }),
    ]),
  );
}
