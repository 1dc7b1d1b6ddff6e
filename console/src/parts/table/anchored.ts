/**
 * Keeps the rows of a live list in place while the user may be about to press one, so that the press hits the intended row. New rows
 * above or between them are counted, and shown when the user asks for them or has left the list; new rows below them are shown at once.
 */
import { useMediaQuery } from "@mantine/hooks";
import { type FocusEvent, type PointerEvent, useCallback, useMemo, useRef, useState } from "react";

const none: ReadonlySet<string> = new Set();

interface Shown<Row> {
  list: string;
  taken: number;
  rows: Row[];
}

/**
 * @param byTouch if true, a touch screen holds the rows all the time, because no pointer movement announces a press there
 * @returns `isHeld`: true while the mouse or the keyboard focus is in the element that has these `handlers`, and always on a touch
 * screen if `byTouch`
 */
export function useHold(byTouch = true) {
  const isTouch = useMediaQuery("(hover: none)", false, { getInitialValueInEffect: false }) ?? false;
  const [isPointed, setPointed] = useState(false);
  const [isFocused, setFocused] = useState(false);
  const handlers = {
    // `onPointerMove` instead of `onPointerEnter`: a list that appears under a resting mouse gets no other event until the mouse moves.
    onPointerMove: ({ pointerType }: PointerEvent) => {
      if (pointerType === "mouse") setPointed(true);
    },
    onPointerLeave: () => setPointed(false),
    // Only keyboard focus holds the rows. A mouse click also sets the focus, which remains after the mouse has left.
    onFocus: ({ target }: FocusEvent) => setFocused(target.matches(":focus-visible")),
    onBlur: ({ currentTarget, relatedTarget }: FocusEvent) => {
      if (!currentTarget.contains(relatedTarget as Node | null)) setFocused(false);
    },
  };
  return { isHeld: (isTouch && byTouch) || isPointed || isFocused, handlers };
}

/**
 * Returns the rows to show, and how they differ from `fresh`.
 * @param fresh the rows as the server lists them now
 * @param list identifies the list, for example by its filter; the rows of another list are not held
 * @param more true if the server has more rows than `fresh`
 */
export function useAnchored<Row>(
  fresh: Row[],
  keyOf: (row: Row) => string,
  { list, isHeld, more = false }: { list: string; isHeld: boolean; more?: boolean },
) {
  const [taken, setTaken] = useState(0);
  const before = useRef<Shown<Row>>(undefined);
  const keys = useRef(keyOf);
  keys.current = keyOf;
  const anchored = useMemo(() => {
    const last = before.current;
    const isSame = last?.list === list && last.taken === taken && last.rows.length > 0;
    return isHeld && isSame ? heldRows(last.rows, fresh, keys.current, more) : { rows: fresh, news: 0, gone: none };
  }, [fresh, list, taken, isHeld, more]);
  before.current = { list, taken, rows: anchored.rows };
  return { ...anchored, take: useCallback(() => setTaken((times) => times + 1), []) };
}

/** Merges held rows and fresh rows: the held rows with their fresh content, then the new rows that the server lists after them. */
export function heldRows<Row>(held: Row[], fresh: Row[], keyOf: (row: Row) => string, more: boolean) {
  const present = new Map(fresh.map((row) => [keyOf(row), row]));
  const shown = new Set(held.map(keyOf));
  const lastFresh = fresh.findLastIndex((row) => shown.has(keyOf(row)));
  const lastHeld = held.findLastIndex((row) => present.has(keyOf(row)));
  const isOther = (row: Row) => !shown.has(keyOf(row));
  const next = lastFresh < 0 ? [] : fresh.slice(lastFresh + 1).filter(isOther);
  // A held row that is missing at the end of `fresh` is not gone if there are more pages: new rows may have moved it to a later page.
  const gone = held.filter((row, at) => !present.has(keyOf(row)) && !(more && at > lastHeld));
  return {
    rows: [...held.map((row) => present.get(keyOf(row)) ?? row), ...next],
    /** The number of rows that are not shown yet. */
    news: fresh.filter(isOther).length - next.length,
    /** The keys of rows that the server no longer lists. */
    gone: new Set(gone.map(keyOf)) as ReadonlySet<string>,
  };
}
