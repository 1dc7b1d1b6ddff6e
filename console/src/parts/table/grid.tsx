/**
 * A long list: only the rows near the visible area are in the DOM, and more rows are fetched when the user scrolls near the end. On
 * a narrow screen each row is a card. Arrow keys (or j and k) move the focus by one row; Enter opens the row's link.
 */
import { useElementSize, useMediaQuery } from "@mantine/hooks";
import { createColumnHelper, type Row as TableRow, tableFeatures, useTable } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { useWords } from "../../messages/words.ts";
import { useAnchored, useHold } from "./anchored.ts";
import { type Column, useColumns } from "./columns.ts";
import css from "./grid.module.css";
import { Heading, Tools } from "./grid-tools.tsx";
import { useOverscan } from "./printing.ts";
import { type Sort, useSort } from "./sorting.ts";

export type { Column };

export interface Selection {
  chosen: ReadonlySet<string>;
  choose: (keys: string[], isChosen: boolean) => void;
}

export interface GridProps<Row> {
  /** The name under which the viewer's choice of columns is kept. */
  name: string;
  label: string;
  /** Identifies the list, for example by its filter; rows of another list are not held in place. */
  list: string;
  rows: Row[];
  keyOf: (row: Row) => string;
  columns: Column<Row>[];
  /** Renders a row on a narrow screen. */
  card: (row: Row) => ReactNode;
  cardHeight?: number;
  rowHeight?: number;
  /** True if the server has more rows. */
  more?: boolean;
  onMore?: () => void;
  selection?: Selection;
  /**
   * Called when scrolling pauses, with the keys of the rows in the DOM and their index range in the server's list (`from` included, `to`
   * excluded; 0 to Infinity while a column sorts the rows). Callers fetch additional data for these rows only.
   */
  onSeen?: (keys: string[], from: number, to: number) => void;
}

// Rows are positioned absolutely, which a table element does not allow; the grid uses divs with table roles instead.
const features = tableFeatures({});
const nearEnd = 100;
/** While the list is sorted by a column, rows are fetched until at least this many are loaded. */
const sortedMost = 1_000;
const restMs = 100;

export function Grid<Row extends object>(props: GridProps<Row>) {
  const { name, label, list, rows: fresh, keyOf, columns: every, card, cardHeight = 92, rowHeight } = props;
  const { more = false, onMore, selection, onSeen } = props;
  const narrow = useMediaQuery("(max-width: 860px)", false, { getInitialValueInEffect: false }) ?? false;
  const { ref: whole, width } = useElementSize<HTMLDivElement>();
  const fingers = useMediaQuery("(pointer: coarse)", false, { getInitialValueInEffect: false }) ?? false;
  const overscan = useOverscan(10);
  const place = useRef<HTMLDivElement>(null);
  const [isScrolled, setScrolled] = useState(false);
  const { isHeld, handlers } = useHold();
  const columnChoice = useColumns({ name, columns: every, ticks: selection !== undefined }, width);
  const columns = columnChoice.shown;
  const { sort, sorted, turn } = useSort(fresh, every);
  const anchored = useAnchored(sorted, keyOf, {
    list: `${list} ${sort?.id} ${sort?.descends}`,
    isHeld: isHeld || isScrolled || (selection?.chosen.size ?? 0) > 0,
    more,
  });
  const { rows, gone } = anchored;
  const size = narrow ? cardHeight : (rowHeight ?? (fingers ? 44 : 36));
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => size,
    overscan,
    getItemKey: (index) => (rows[index] ? keyOf(rows[index]) : index),
    // The rows are rendered after the scroll event, not synchronously in it, so that rendering does not delay scrolling.
    useFlushSync: false,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the rows must be measured again when their height changes.
  useEffect(() => virtual.measure(), [size]);
  const seen = virtual.getVirtualItems();
  const last = seen.at(-1)?.index ?? 0;
  const wantsMore = last >= rows.length - nearEnd || (sort !== undefined && fresh.length < sortedMost);
  useEffect(() => {
    if (more && wantsMore) onMore?.();
  }, [more, wantsMore, onMore]);
  const first = seen[0]?.index ?? 0;
  const lines = useLines({ rows, keyOf, columns }, first, last);
  const isSorted = sort !== undefined;
  useSeenReport(lines, isSorted ? undefined : first, onSeen);

  const onKeyDown = (event: KeyboardEvent) => {
    const next = rowAfter(event, first);
    if (next === undefined || next < 0 || next >= rows.length) return;
    event.preventDefault();
    virtual.scrollToIndex(next);
    focusRow(place.current, next);
  };

  const template = `${selection ? "34px " : ""}${columns.map(({ width }) => width).join(" ")}`;
  return (
    <div ref={whole} className={css.whole} {...handlers}>
      <Tools
        shown={fresh.length}
        more={more}
        sorted={isSorted}
        news={anchored.news}
        onTake={() => {
          anchored.take();
          place.current?.scrollTo({ top: 0 });
        }}
        columns={narrow ? undefined : { every, ...columnChoice }}
      />
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the key presses come from the links of its rows. */}
      <div
        ref={place}
        className={css.place}
        onKeyDown={onKeyDown}
        onScroll={({ currentTarget }) => setScrolled(currentTarget.scrollTop > 0)}
      >
        <div role="table" aria-label={label} aria-rowcount={more ? -1 : rows.length + 1}>
          <div role="rowgroup" className={narrow && !selection ? "unseen" : css.head}>
            <Head
              columns={columns}
              narrow={narrow}
              template={template}
              rows={rows}
              keyOf={keyOf}
              selection={selection}
              sort={sort}
              onTurn={turn}
            />
          </div>
          <div role="rowgroup" className={css.body} style={{ height: virtual.getTotalSize() }}>
            {seen.map(({ index, start }) => {
              const line = lines[index - first];
              return (
                line && (
                  <Line
                    key={line.id}
                    line={line}
                    index={index}
                    start={start}
                    columns={columns}
                    size={size}
                    narrow={narrow}
                    template={template}
                    card={card}
                    isChosen={selection?.chosen.has(line.id) ?? false}
                    isGone={gone.has(line.id)}
                    choose={selection?.choose}
                  />
                )
              );
            })}
          </div>
        </div>
      </div>
    </div>
  );
}

/** The table's rows from index `first` to index `last`. */
function useLines<Row extends object>(
  { rows, keyOf, columns }: Pick<GridProps<Row>, "rows" | "keyOf" | "columns">,
  first: number,
  last: number,
): TableRow<typeof features, Row>[] {
  const defs = useMemo(() => {
    const column = createColumnHelper<typeof features, Row>();
    return columns.map(({ id, title, cell }) =>
      column.display({ id, header: title, cell: ({ row }) => cell(row.original) }),
    );
  }, [columns]);
  // The table gets only the rows in the DOM, because with ten thousand rows it would rebuild all of them whenever some are added.
  const data = useMemo(() => rows.slice(first, last + 1), [rows, first, last]);
  return useTable({ features, columns: defs, data, getRowId: keyOf }).getRowModel().rows;
}

/** @param first index of the first row in the DOM; undefined if the browser sorts the rows, which can then be from any page */
function useSeenReport(lines: { id: string }[], first: number | undefined, onSeen: GridProps<unknown>["onSeen"]): void {
  const names = lines.map(({ id }) => id).join("\n");
  useEffect(() => {
    if (names === "") return;
    const keys = names.split("\n");
    const [from, to] = first === undefined ? [0, Number.POSITIVE_INFINITY] : [first, first + keys.length];
    const resting = setTimeout(() => onSeen?.(keys, from, to), restMs);
    return () => clearTimeout(resting);
  }, [names, first, onSeen]);
}

/**
 * The index of the row to focus after an arrow key, j or k; undefined for other keys.
 * @param first the index to return if no row has the focus
 */
function rowAfter(event: KeyboardEvent, first: number): number | undefined {
  const step =
    event.key === "ArrowDown" || event.key === "j" ? 1 : event.key === "ArrowUp" || event.key === "k" ? -1 : 0;
  if (step === 0 || event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const row = (event.target as HTMLElement).closest<HTMLElement>("[data-index]");
  return row ? Number(row.dataset.index) + step : first;
}

/** Focuses the row's link or button. Tries again in the next frames, because the row may not be in the DOM yet. */
function focusRow(place: HTMLElement | null, index: number, tries = 5): void {
  const link = place?.querySelector<HTMLElement>(`[data-index="${index}"] a, [data-index="${index}"] button`);
  if (link) link.focus({ preventScroll: true });
  else if (tries > 0) requestAnimationFrame(() => focusRow(place, index, tries - 1));
}

interface HeadProps<Row> extends Pick<GridProps<Row>, "columns" | "rows" | "keyOf" | "selection"> {
  narrow: boolean;
  template: string;
  sort: Sort | undefined;
  onTurn: (id: string, numeric: boolean) => void;
}

function Head<Row>({ columns, rows, keyOf, selection, narrow, template, sort, onTurn }: HeadProps<Row>) {
  const { t } = useWords();
  const all = selection !== undefined && rows.length > 0 && rows.every((row) => selection.chosen.has(keyOf(row)));
  const some = selection !== undefined && selection.chosen.size > 0;
  return (
    <div
      role="row"
      className={css.row}
      style={{ gridTemplateColumns: narrow ? "34px 1fr" : template }}
      aria-rowindex={1}
    >
      {selection && (
        <span role="columnheader">
          <Tick
            label={t("grid.all")}
            isOn={all}
            isHalf={some && !all}
            onTurn={(isOn) => selection.choose(rows.map(keyOf), isOn)}
          />
        </span>
      )}
      {columns.map((column) => (
        <Heading key={column.id} column={column} narrow={narrow} sort={sort} onTurn={onTurn} />
      ))}
    </div>
  );
}

interface LineProps<Row extends object> {
  line: TableRow<typeof features, Row>;
  index: number;
  start: number;
  columns: Column<Row>[];
  size: number;
  narrow: boolean;
  template: string;
  card: (row: Row) => ReactNode;
  isChosen: boolean;
  /** True if the server no longer lists the row, which stays in its place while the list is held. */
  isGone: boolean;
  choose: Selection["choose"] | undefined;
}

function LineOf<Row extends object>(props: LineProps<Row>) {
  const { line, index, start, columns, size, narrow, template, card, isChosen, isGone, choose } = props;
  const { t } = useWords();
  const cards = choose ? "34px minmax(0, 1fr)" : "minmax(0, 1fr)";
  return (
    <div
      role="row"
      data-index={index}
      aria-rowindex={index + 2}
      className={narrow ? css.card : css.row}
      data-chosen={isChosen || undefined}
      data-gone={isGone || undefined}
      {...(isGone ? { title: t("grid.gone") } : {})}
      style={{
        transform: `translateY(${start}px)`,
        height: size,
        gridTemplateColumns: narrow ? cards : template,
      }}
    >
      {choose && (
        <span role="cell">
          <Tick
            label={t("grid.choose", { what: line.id })}
            isOn={isChosen}
            onTurn={(isOn) => choose([line.id], isOn)}
          />
        </span>
      )}
      {narrow ? (
        <div role="cell" className={css.cardCell} aria-colspan={columns.length}>
          {card(line.original)}
        </div>
      ) : (
        columns.map(({ id, end, cell }) => (
          <div key={id} role="cell" className={css.cell} data-end={end || undefined}>
            {cell(line.original)}
          </div>
        ))
      )}
    </div>
  );
}

/** A row re-renders only when its content changes, not at each scroll, because rendering dominates the cost of scrolling. */
const Line = memo(
  LineOf,
  ({ line: before, card: was, ...rest }, { line: after, card: is, ...others }) =>
    before.original === after.original &&
    (!others.narrow || was === is) &&
    (Object.keys(others) as (keyof typeof others)[]).every((name) => rest[name] === others[name]),
) as typeof LineOf;

function Tick(props: { label: string; isOn: boolean; isHalf?: boolean; onTurn: (isOn: boolean) => void }) {
  const { label, isOn, isHalf = false, onTurn } = props;
  return (
    <input
      type="checkbox"
      className={css.tick}
      aria-label={label}
      checked={isOn}
      ref={(box) => {
        if (box) box.indeterminate = isHalf;
      }}
      onChange={(event) => onTurn(event.currentTarget.checked)}
    />
  );
}
