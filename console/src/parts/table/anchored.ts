/**
 * Keeps the rows of a live list in place while somebody may be about to press one: what a press hits must not change. New rows are
 * counted, and shown when the user asks for them or has left the list.
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
 * @param byTouch true if the list is held for as long as it is shown on a screen that is touched, where no pointer announces a press
 * @returns whether the pointer, or the focus of the keyboard, is in the element with these handlers
 */
export function useHold(byTouch = true) {
  const isTouch = useMediaQuery("(hover: none)", false, { getInitialValueInEffect: false }) ?? false;
  const [isPointed, setPointed] = useState(false);
  const [isFocused, setFocused] = useState(false);
  const handlers = {
    // The list may appear under a pointer that rests: then only its first move is an event.
    onPointerMove: ({ pointerType }: PointerEvent) => {
      if (pointerType === "mouse") setPointed(true);
    },
    onPointerLeave: () => setPointed(false),
    // A press leaves the focus as well, which says nothing about the next press.
    onFocus: ({ target }: FocusEvent) => setFocused(target.matches(":focus-visible")),
    onBlur: ({ currentTarget, relatedTarget }: FocusEvent) => {
      if (!currentTarget.contains(relatedTarget as Node | null)) setFocused(false);
    },
  };
  return { isHeld: (isTouch && byTouch) || isPointed || isFocused, handlers };
}

/**
 * @param fresh the rows as the server has them now
 * @param list identifies what is listed: another filter is another list, whose rows are not held
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

/** The held rows with their present content, followed by those that come after all of them. */
export function heldRows<Row>(held: Row[], fresh: Row[], keyOf: (row: Row) => string, more: boolean) {
  const present = new Map(fresh.map((row) => [keyOf(row), row]));
  const shown = new Set(held.map(keyOf));
  const lastFresh = fresh.findLastIndex((row) => shown.has(keyOf(row)));
  const lastHeld = held.findLastIndex((row) => present.has(keyOf(row)));
  const isOther = (row: Row) => !shown.has(keyOf(row));
  const next = lastFresh < 0 ? [] : fresh.slice(lastFresh + 1).filter(isOther);
  // New rows may have pushed the last rows out of the pages that were read: those are not gone.
  const gone = held.filter((row, at) => !present.has(keyOf(row)) && !(more && at > lastHeld));
  return {
    rows: [...held.map((row) => present.get(keyOf(row)) ?? row), ...next],
    /** The number of rows that are not shown yet. */
    news: fresh.filter(isOther).length - next.length,
    /** The keys of rows that the server no longer lists. */
    gone: new Set(gone.map(keyOf)) as ReadonlySet<string>,
  };
}
