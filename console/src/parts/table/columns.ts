import { type ReactNode, useMemo, useState } from "react";
import type { SortValue } from "./sorting.ts";

export interface Column<Row> {
  id: string;
  title: string;
  /** The column's width in CSS, such as `minmax(160px, 2fr)`. */
  width: string;
  end?: boolean;
  /** The value by which the column sorts; without it, the column does not. */
  sortBy?: (row: Row) => SortValue;
  /** Without room, the columns of the highest rank are left out first; a column without a rank stays. */
  rank?: number;
  cell: (row: Row) => ReactNode;
}

interface Sized {
  id: string;
  width: string;
  rank?: number;
}

/** true: always shown; false: never; undefined: if there is room. */
type Choices = Record<string, boolean | undefined>;

const gap = 16;
const padding = 32;
const tickWidth = 34;

/** The width that a column needs at least: the first number of its width. */
const leastOf = ({ width }: Sized): number => Number(/\d+/.exec(width)?.[0] ?? 0);

/** The columns that fit: those of the highest rank are left out first, and a chosen one, or one without a rank, never is. */
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
    // If the browser stores nothing, the choice lasts as long as the page.
    return {};
  }
}

/** The columns that the viewer chose, or that have room. @param width of the grid in pixels; 0: not known yet */
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
      // See above.
    }
  };
  return {
    shown,
    isChosen: Object.keys(choices).length > 0,
    choose: (id: string, isShown: boolean) => keep({ ...choices, [id]: isShown }),
    chooseNone: () => keep({}),
  };
}
