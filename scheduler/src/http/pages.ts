import { CarillonError } from "../errors.ts";

/** A place in a list as an opaque text: whoever reads it takes only what it wrote. */
export const cursorText = (...place: (string | number)[]): string =>
  Buffer.from(JSON.stringify(place)).toString("base64url");

/**
 * @param shape the kind of each part
 * @throws REQUEST_INVALID
 */
export function readCursor(text: string | undefined, shape: ("string" | "number")[]): (string | number)[] | null {
  if (text === undefined) return null;
  let place: unknown;
  try {
    place = JSON.parse(Buffer.from(text, "base64url").toString());
  } catch {
    // What cannot be read is refused below, as what has another shape.
  }
  const fits =
    Array.isArray(place) &&
    place.length === shape.length &&
    place.every(
      (part, at) =>
        typeof part === shape[at] && (typeof part === "string" ? !part.includes("\0") : Number.isSafeInteger(part)),
    );
  if (fits) return place as (string | number)[];
  throw new CarillonError("REQUEST_INVALID", "the cursor is not one of this list's", {
    hint: "Give `next` of the page before, as it is.",
  });
}

/** A page of at most `limit`, of a list from which one more was read to see whether it goes on. */
export function pageOf<Row, Item>(
  rows: Row[],
  limit: number,
  item: (row: Row) => Item,
  place: (row: Row) => (string | number)[],
): { items: Item[]; next: string | null } {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    items: shown.map(item),
    next: rows.length > limit && last !== undefined ? cursorText(...place(last)) : null,
  };
}

/** Lists of numbers or names: after, or before, the last one shown. */
export const nameCursor = (text: string | undefined): string =>
  (readCursor(text, ["string"])?.[0] as string | undefined) ?? "";
export const numberCursor = (text: string | undefined): number =>
  (readCursor(text, ["number"])?.[0] as number | undefined) ?? Number.MAX_SAFE_INTEGER;
