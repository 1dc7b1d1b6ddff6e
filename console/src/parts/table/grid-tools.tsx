/** The tools above a grid's rows: the number of rows, a notice of new rows, the choice of columns, and sortable headings. */
import { Button, Checkbox, Popover } from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconColumns3 } from "@tabler/icons-react";
import { useWords } from "../../messages/words.ts";
import type { Column } from "./columns.ts";
import css from "./grid.module.css";
import { News } from "./news.tsx";
import type { Sort } from "./sorting.ts";

interface ColumnChoice<Row> {
  every: Column<Row>[];
  shown: Column<Row>[];
  isChosen: boolean;
  choose: (id: string, isShown: boolean) => void;
  chooseNone: () => void;
}

export function Tools<Row>({
  shown,
  more,
  sorted,
  news,
  onTake,
  columns,
}: {
  shown: number;
  more: boolean;
  sorted: boolean;
  news: number;
  onTake: () => void;
  /** The choice of columns; undefined if the rows are shown as cards. */
  columns: ColumnChoice<Row> | undefined;
}) {
  const { t, count } = useWords();
  return (
    <div className={css.tools}>
      <span className="figures">
        {sorted && more
          ? t("grid.sortedAmong", { n: shown })
          : `${t("grid.rows", { n: count(shown) + (more ? "+" : "") })}`}
      </span>
      <News n={news} onTake={onTake} />
      {columns && <Columns {...columns} />}
    </div>
  );
}

function Columns<Row>({ every, shown, isChosen, choose, chooseNone }: ColumnChoice<Row>) {
  const { t } = useWords();
  return (
    // Rendered inside the page's landmark rather than in a portal, so that screen readers find the choice within the page's content.
    <Popover position="bottom-end" width={220} trapFocus withinPortal={false}>
      <Popover.Target>
        <Button
          size="compact-xs"
          variant="subtle"
          c="var(--c-soft)"
          leftSection={<IconColumns3 size={14} aria-hidden />}
        >
          {shown.length < every.length
            ? t("grid.columnsOf", { shown: shown.length, n: every.length })
            : t("grid.columns")}
        </Button>
      </Popover.Target>
      <Popover.Dropdown className={css.columns ?? ""}>
        {every.map(({ id, title }) => {
          const isShown = shown.some((column) => column.id === id);
          return (
            <Checkbox
              key={id}
              size="xs"
              label={title}
              checked={isShown}
              disabled={isShown && shown.length === 1}
              onChange={(event) => choose(id, event.currentTarget.checked)}
            />
          );
        })}
        <Button size="compact-xs" variant="default" disabled={!isChosen} onClick={chooseNone}>
          {t("grid.columnsUsual")}
        </Button>
      </Popover.Dropdown>
    </Popover>
  );
}

/** A column's heading. If the column has `sortBy` and the screen is not narrow, pressing the heading sorts the rows. */
export function Heading<Row>({
  column: { id, title, end = false, sortBy },
  narrow,
  sort,
  onTurn,
}: {
  column: Column<Row>;
  narrow: boolean;
  sort: Sort | undefined;
  onTurn: (id: string, numeric: boolean) => void;
}) {
  const isOn = sort?.id === id;
  const Icon = sort?.descends ? IconArrowDown : IconArrowUp;
  return (
    <span
      role="columnheader"
      data-end={end || undefined}
      className={narrow ? "unseen" : "cut"}
      {...(isOn ? { "aria-sort": sort.descends ? "descending" : "ascending" } : {})}
    >
      {sortBy && !narrow ? (
        <button type="button" className={css.sort} data-on={isOn || undefined} onClick={() => onTurn(id, end)}>
          <span className="cut">{title}</span>
          {isOn && <Icon size={13} aria-hidden />}
        </button>
      ) : (
        title
      )}
    </span>
  );
}
