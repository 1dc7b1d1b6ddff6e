import { pathTo } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";

/** Names of fields that contain JSON of any shape, written by users. */
const values = new Set(["payload", "progress", "result", "fields", "was", "is"]);
/** Top-level fields that contain positions in lists; they are never cut, because a caller sends them back. */
const whole = new Set(["next", "tail"]);

/** The smallest factor for the limits; texts may then still have 250 characters, so names (at most 200) are never cut. */
const leastShare = 1 / 8;

export interface Bounded {
  answer: Record<string, unknown>;
  /** The paths of the values that were cut. */
  cut: string[];
}

/**
 * Shortens an answer, by cutting long texts, users' JSON values and lists, until it has at most limits.mcpAnswerCharacters as
 * JSON. The limits of these three are multiplied by one factor, which is halved until the answer fits or `leastShare` is reached.
 * Items of a page are never omitted, because the next page starts after the last of them.
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
  /** The name of the field that contains the value; "" for an item of a list. */
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
