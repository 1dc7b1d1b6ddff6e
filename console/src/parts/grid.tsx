/**
 * A long list: only what is seen is in the page, however long it is, and more is asked for when its end comes near. On a narrow
 * screen each row is a card. Arrow keys (or j and k) go from row to row; Enter follows the row's link.
 */
import { Checkbox } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { createColumnHelper, tableFeatures, useTable } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef } from "react";
import { useWords } from "../messages/words.ts";
import css from "./grid.module.css";

export interface Column<Row> {
  id: string;
  title: string;
  /** As CSS has it, such as `minmax(160px, 2fr)`. */
  width: string;
  end?: boolean;
  cell: (row: Row) => ReactNode;
}

export interface Selection {
  chosen: ReadonlySet<string>;
  choose: (keys: string[], isChosen: boolean) => void;
}

export interface GridProps<Row> {
  label: string;
  rows: Row[];
  keyOf: (row: Row) => string;
  columns: Column<Row>[];
  /** A row on a narrow screen. */
  card: (row: Row) => ReactNode;
  cardHeight?: number;
  rowHeight?: number;
  /** There are more than these. */
  more?: boolean;
  onMore?: () => void;
  selection?: Selection;
  /** Which rows are in the page now, for what is asked about them alone. */
  onSeen?: (keys: string[]) => void;
}

// A table element's rows cannot be placed where they are seen, so the roles are said.
const features = tableFeatures({});
const nearEnd = 30;

export function Grid<Row extends object>(props: GridProps<Row>) {
  const {
    label,
    rows,
    keyOf,
    columns,
    card,
    cardHeight = 92,
    rowHeight = 44,
    more = false,
    onMore,
    selection,
    onSeen,
  } = props;
  const { t } = useWords();
  const narrow = useMediaQuery("(max-width: 860px)", false, { getInitialValueInEffect: false }) ?? false;
  const place = useRef<HTMLDivElement>(null);
  const defs = useMemo(() => {
    const column = createColumnHelper<typeof features, Row>();
    return columns.map(({ id, title, cell }) =>
      column.display({ id, header: title, cell: ({ row }) => cell(row.original) }),
    );
  }, [columns]);
  const table = useTable({ features, columns: defs, data: rows, getRowId: keyOf });
  const lines = table.getRowModel().rows;
  const size = narrow ? cardHeight : rowHeight;
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => place.current,
    estimateSize: () => size,
    overscan: 12,
    getItemKey: (index) => lines[index]?.id ?? index,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the rows have another height now.
  useEffect(() => virtual.measure(), [size]);
  const seen = virtual.getVirtualItems();
  const last = seen.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && last >= lines.length - nearEnd) onMore?.();
  }, [more, last, lines.length, onMore]);
  const names = seen.map(({ key }) => String(key)).join("\n");
  useEffect(() => {
    if (names !== "") onSeen?.(names.split("\n"));
  }, [names, onSeen]);

  const onKeyDown = (event: KeyboardEvent) => {
    const step =
      event.key === "ArrowDown" || event.key === "j" ? 1 : event.key === "ArrowUp" || event.key === "k" ? -1 : 0;
    if (step === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = (event.target as HTMLElement).closest<HTMLElement>("[data-index]");
    const next = row ? Number(row.dataset.index) + step : (seen[0]?.index ?? 0);
    if (next < 0 || next >= lines.length) return;
    event.preventDefault();
    virtual.scrollToIndex(next);
    const focus = (tries: number) => {
      const link = place.current?.querySelector<HTMLElement>(`[data-index="${next}"] a, [data-index="${next}"] button`);
      if (link) link.focus({ preventScroll: true });
      else if (tries > 0) requestAnimationFrame(() => focus(tries - 1));
    };
    focus(5);
  };

  const template = `${selection ? "34px " : ""}${columns.map(({ width }) => width).join(" ")}`;
  const all = selection !== undefined && rows.length > 0 && rows.every((row) => selection.chosen.has(keyOf(row)));
  const some = selection !== undefined && selection.chosen.size > 0;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys go to its rows' links.
    <div ref={place} className={css.place} onKeyDown={onKeyDown}>
      <div role="table" aria-label={label} aria-rowcount={more ? -1 : lines.length + 1}>
        <div role="rowgroup" className={narrow && !selection ? "unseen" : css.head}>
          <div
            role="row"
            className={css.row}
            style={{ gridTemplateColumns: narrow ? "34px 1fr" : template }}
            aria-rowindex={1}
          >
            {selection && (
              <span role="columnheader">
                <Checkbox
                  size="xs"
                  aria-label={t("grid.all")}
                  checked={all}
                  indeterminate={some && !all}
                  onChange={(event) => selection.choose(rows.map(keyOf), event.currentTarget.checked)}
                />
              </span>
            )}
            {columns.map(({ id, title, end }) => (
              <span key={id} role="columnheader" data-end={end || undefined} className={narrow ? "unseen" : "cut"}>
                {title}
              </span>
            ))}
          </div>
        </div>
        <div role="rowgroup" className={css.body} style={{ height: virtual.getTotalSize() }}>
          {seen.map(({ index, key, start }) => {
            const line = lines[index];
            if (!line) return null;
            return (
              <div
                key={key}
                role="row"
                data-index={index}
                aria-rowindex={index + 2}
                className={narrow ? css.card : css.row}
                data-chosen={selection?.chosen.has(line.id) || undefined}
                style={{
                  transform: `translateY(${start}px)`,
                  height: size,
                  gridTemplateColumns: narrow ? (selection ? "34px minmax(0, 1fr)" : "minmax(0, 1fr)") : template,
                }}
              >
                {selection && (
                  <span role="cell">
                    <Checkbox
                      size="xs"
                      aria-label={t("grid.choose", { what: line.id })}
                      checked={selection.chosen.has(line.id)}
                      onChange={(event) => selection.choose([line.id], event.currentTarget.checked)}
                    />
                  </span>
                )}
                {narrow ? (
                  <div role="cell" className={css.cardCell} aria-colspan={columns.length}>
                    {card(line.original)}
                  </div>
                ) : (
                  line.getAllCells().map((cell, at) => (
                    <div key={cell.id} role="cell" className={css.cell} data-end={columns[at]?.end || undefined}>
                      <table.FlexRender cell={cell} />
                    </div>
                  ))
                )}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
