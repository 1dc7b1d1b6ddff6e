import { useMemo, useState } from "react";

/** A value by which rows are sorted; null is last in either direction. */
export type SortValue = string | number | null;

export interface Sort {
  id: string;
  descends: boolean;
}

const collator = new Intl.Collator(undefined, { numeric: true });

function compared(a: SortValue, b: SortValue, descends: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const order = typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
  return descends ? -order : order;
}

/** Returns the rows in sorted order. Rows with equal values keep the server's order. */
export function sortedRows<Row>(rows: Row[], by: (row: Row) => SortValue, descends: boolean): Row[] {
  return rows
    .map((row): [Row, SortValue] => [row, by(row)])
    .sort(([, a], [, b]) => compared(a, b, descends))
    .map(([row]) => row);
}

/** Sorts the rows by one column; a third press on its heading gives the server's order back. */
export function useSort<Row>(rows: Row[], columns: { id: string; end?: boolean; sortBy?: (row: Row) => SortValue }[]) {
  const [sort, setSort] = useState<Sort>();
  const column = columns.find(({ id }) => id === sort?.id);
  const by = column?.sortBy;
  const sorted = useMemo(() => (by && sort ? sortedRows(rows, by, sort.descends) : rows), [rows, by, sort]);
  /** Changes the sorting when a heading is pressed. The first press sorts numbers in descending order, and texts in ascending order. */
  const turn = (id: string, numeric: boolean) =>
    setSort((before) =>
      before?.id !== id
        ? { id, descends: numeric }
        : before.descends === numeric
          ? { id, descends: !numeric }
          : undefined,
    );
  return { sort: by ? sort : undefined, sorted, turn };
}
