import { type ReactNode, useMemo, useState } from "react";
import type { SortValue } from "./sorting.ts";

export interface Column<Row> {
  id: string;
  title: string;
  /** The column's width in CSS, such as `minmax(160px, 2fr)`. */
  width: string;
  end?: boolean;
  /** The value by which the column sorts the rows; without it, the rows cannot be sorted by this column. */
  sortBy?: (row: Row) => SortValue;
  /** If the grid is too narrow, columns with the highest rank are hidden first; a column without a rank is not hidden. */
  rank?: number;
  cell: (row: Row) => ReactNode;
}

interface Sized {
  id: string;
  width: string;
  rank?: number;
}

/** The viewer's choice for each column: true: always shown; false: never; undefined: shown if it fits. */
type Choices = Record<string, boolean | undefined>;

const gap = 16;
const padding = 32;
const tickWidth = 34;

/** The width that a column needs at least: the first number of its width. */
const leastOf = ({ width }: Sized): number => Number(/\d+/.exec(width)?.[0] ?? 0);

/**
 * Returns the columns to show in this width (in pixels). Columns that the viewer hid are omitted. If the other columns do not
 * fit, those with the highest rank are omitted first; columns that the viewer chose or that have no rank stay.
 */
export function fitting<One extends Sized>(columns: One[], choices: Choices, width: number): One[] {
  let shown = columns.filter(({ id }) => choices[id] !== false);
  const needs = () => shown.reduce((sum, column) => sum + leastOf(column) + gap, padding - gap);
  while (needs() > width) {
    const rank = Math.max(0, ...shown.map(({ id, rank = 0 }) => (choices[id] ? 0 : rank)));
    if (rank === 0) break;
    shown = shown.filter((column) => column.rank !== rank || choices[column.id]);
  }
  return shown;
}

function kept(place: string): Choices {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(place) ?? "{}");
    return typeof found === "object" && found !== null ? (found as Choices) : {};
  } catch {
    // The browser stores nothing, or the stored text is invalid: the grid starts without choices.
    return {};
  }
}

/** The columns to show, and functions to change the viewer's choice. @param width of the grid in pixels; 0 if not measured yet */
export function useColumns<One extends Sized>(
  { name, columns, ticks }: { name: string; columns: One[]; ticks: boolean },
  width: number,
) {
  const place = `carillon.columns.${name}`;
  const [choices, setChoices] = useState(() => kept(place));
  const room = width === 0 ? Number.POSITIVE_INFINITY : width - (ticks ? tickWidth + gap : 0);
  const shown = useMemo(() => fitting(columns, choices, room), [columns, choices, room]);
  const keep = (next: Choices) => {
    setChoices(next);
    try {
      localStorage.setItem(place, JSON.stringify(next));
    } catch {
      // The browser stores nothing: the choice is lost when the page is closed.
    }
  };
  return {
    shown,
    isChosen: Object.keys(choices).length > 0,
    choose: (id: string, isShown: boolean) => keep({ ...choices, [id]: isShown }),
    chooseNone: () => keep({}),
  };
}
