import { CarillonError } from "../../base/errors.ts";

/** Encodes a position in a list as an opaque cursor. `readCursor` accepts only cursors of the expected form. */
export const cursorText = (...place: (string | number)[]): string =>
  Buffer.from(JSON.stringify(place)).toString("base64url");

/**
 * Decodes a cursor; null if there is none, which means the beginning of the list.
 * @param shape the expected type of each part
 * @throws REQUEST_INVALID
 */
export function readCursor(text: string | undefined, shape: ("string" | "number")[]): (string | number)[] | null {
  if (text === undefined) return null;
  let place: unknown;
  try {
    place = JSON.parse(Buffer.from(text, "base64url").toString());
  } catch {
    // Text that is not JSON is refused below, like a cursor of another form.
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

/** Builds a page of at most `limit` rows. `rows` may contain one more row, which shows that another page follows. */
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

/**
 * The maximum number of reads for one page, and the rows per read. A caller who may view few of the rows may therefore get a page with
 * fewer rows than its limit; the client continues with `next`.
 */
const looksMost = 10;
const lookedAtOnce = 200;

/** A part of a list. `next` is the position after which the list continues; null at the end of the list. */
export interface Part<Row, Place> {
  rows: Row[];
  next: Place | null;
}

/**
 * Builds a page of the rows for which `visible` returns true, and calls `shown` for each of them. If every row may be visible
 * (`everything`), the first read requests just one page. The number of reads is limited; `next` then continues after the last row read,
 * even if the page is not full.
 * @param read returns rows, where fewer than requested mean the end of the list, or a `Part` of the list
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

/** Returns the rows after the cursor's name, sorted by JavaScript: the database may sort differently, and pages would then skip rows. */
export function namedAfter<Row extends { name: string }>(rows: readonly Row[], cursor: string | undefined): Row[] {
  const after = nameCursor(cursor);
  return rows.filter(({ name }) => name > after).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Decodes the cursor of a list sorted by name: the last name of the previous page; "" without a cursor. */
export const nameCursor = (text: string | undefined): string =>
  (readCursor(text, ["string"])?.[0] as string | undefined) ?? "";
export const numberCursor = (text: string | undefined): number =>
  (readCursor(text, ["number"])?.[0] as number | undefined) ?? Number.MAX_SAFE_INTEGER;
/** Decodes the cursor of a list in ascending order of numbers: the last number of the previous page; 0 without a cursor. */
export const afterCursor = (text: string | undefined): number =>
  (readCursor(text, ["number"])?.[0] as number | undefined) ?? 0;
