import { pathTo } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";

/** Names of fields that contain JSON of any shape, written by users. */
const values = new Set(["payload", "progress", "result", "fields", "was", "is"]);
/** Top-level fields that contain positions in lists; they are never cut, because a caller sends them back. */
const whole = new Set(["next", "tail"]);

/** The smallest factor for texts and values; texts may then still have 250 characters, so names (at most 200) are never cut. */
const leastShare = 1 / 8;

export interface Bounded {
  answer: Record<string, unknown>;
  /** The paths of the values that were cut. */
  cut: string[];
  /** False if the answer is still too long, as a page of long items may be: see `fittingPage`. */
  fits: boolean;
}

/**
 * Shortens an answer, by cutting long texts, users' JSON values and lists, until it has at most limits.mcpAnswerCharacters as
 * JSON. The limits of these three are multiplied by one factor, which is halved until the answer fits, for texts and values down to
 * `leastShare`, for lists down to one item. Items of a page are never omitted, because the next page starts after the last of them.
 */
export function bounded(answer: object): Bounded {
  for (let share = 1; ; share /= 2) {
    const cut: string[] = [];
    const short = shortened(answer, { path: "", name: "", share, cut }) as Record<string, unknown>;
    const fits = JSON.stringify(cut.length === 0 ? short : { ...short, cut }).length <= limits.mcpAnswerCharacters;
    if (fits || limits.mcpListItems * share <= 1) return { answer: short, cut, fits };
  }
}

/**
 * Reads a page. While the page does not fit even when it is cut, reads it again with half as many items. `next` thus always follows the
 * last item of the returned page.
 */
export async function fittingPage<Page extends object>(
  read: (given: Record<string, unknown>) => Promise<Page>,
  given: Record<string, unknown>,
): Promise<Page> {
  for (let limit = given.limit; ; ) {
    const page = await read({ ...given, limit });
    const { length = 0 } = (page as { items?: unknown[] }).items ?? [];
    if (length < 2 || bounded(page).fits) return page;
    limit = Math.floor(length / 2);
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
  const { path, name, cut } = place;
  const share = Math.max(place.share, leastShare);
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
    const most = path === "items" ? value.length : Math.max(1, Math.floor(limits.mcpListItems * place.share));
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
