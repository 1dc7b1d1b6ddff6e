import { CarillonError } from "../../base/errors.ts";

/** A place in a list as opaque text. `readCursor` accepts only text of the expected shape. */
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
    // Text that cannot be parsed is refused below, like a place of another shape.
  }
  const fits =
    Array.isArray(place) &&
    place.length === shape.length &&
    place.every(
      (part, at) =>
        typeof part === shape[at] && (typeof part === "string" ? !part.includes("\0") : Number.isSafeInteger(part)),
    );
  if (fits) return place as (string | number)[];
  throw cursorForeign();
}

export const cursorForeign = (): CarillonError =>
  new CarillonError("REQUEST_INVALID", "the cursor is not one of this list's", {
    hint: "Give `next` of the page before, as it is. One from before an upgrade may no longer be valid: begin with the first page.",
  });

/** A page of at most `limit` rows. The list has one row more than that if another page follows. */
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

/** A page may be short where many rows are invisible to the caller; the client continues with `next`. */
const looksMost = 10;
const lookedAtOnce = 200;

/** A part of a list, and the place after which it goes on; null: it is over. */
export interface Part<Row, Place> {
  rows: Row[];
  next: Place | null;
}

/**
 * A page of the rows that are `visible`, which are `shown` one by one. Where that may be all, the first look is for no more than a page. It
 * takes a bounded number of looks, and `next` leads on from where they stopped, also when they found less than a page.
 * @param read returns a list, which is over if it has fewer rows than asked for, or a part of one
 */
export async function visiblePage<Row, Item, Place>(
  { limit, start, everything }: { limit: number; start: Place; everything: boolean },
  read: (from: Place, limit: number) => Promise<Row[] | Part<Row, Place>>,
  visible: (row: Row) => boolean,
  {
    item,
    after,
    cursor,
    shown,
  }: {
    item: (row: Row) => Item;
    after: (row: Row) => Place;
    cursor: (place: Place) => (string | number)[];
    shown?: (row: Row) => void;
  },
): Promise<{ items: Item[]; next: string | null }> {
  const seen: Row[] = [];
  let from = start;
  for (let looks = 0; looks < looksMost; looks++) {
    const most = everything && looks === 0 ? limit + 1 : lookedAtOnce;
    const found = await read(from, most);
    const { rows, next } = Array.isArray(found) ? partOf(found, most, after) : found;
    for (const row of rows) {
      if (!visible(row)) continue;
      const before = seen[limit - 1];
      if (before !== undefined) return { items: seen.map(item), next: cursorText(...cursor(after(before))) };
      seen.push(row);
      shown?.(row);
    }
    if (next === null) return { items: seen.map(item), next: null };
    from = next;
  }
  return { items: seen.map(item), next: cursorText(...cursor(from)) };
}

function partOf<Row, Place>(rows: Row[], most: number, after: (row: Row) => Place): Part<Row, Place> {
  const last = rows.at(-1);
  return { rows, next: last === undefined || rows.length < most ? null : after(last) };
}

/** The rows after the cursor's name, in JavaScript's order: the database's order may differ, and pages in it would skip rows. */
export function namedAfter<Row extends { name: string }>(rows: readonly Row[], cursor: string | undefined): Row[] {
  const after = nameCursor(cursor);
  return rows.filter(({ name }) => name > after).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Lists of numbers or names: after, or before, the last one shown. */
export const nameCursor = (text: string | undefined): string =>
  (readCursor(text, ["string"])?.[0] as string | undefined) ?? "";
export const numberCursor = (text: string | undefined): number =>
  (readCursor(text, ["number"])?.[0] as number | undefined) ?? Number.MAX_SAFE_INTEGER;
/** The cursor of a list in ascending order of numbers. */
export const afterCursor = (text: string | undefined): number =>
  (readCursor(text, ["number"])?.[0] as number | undefined) ?? 0;
