import type { ReactNode } from "react";
import css from "./anchored.module.css";
import { useAnchored, useHold } from "./anchored.ts";
import { News } from "./news.tsx";

/** A live list, other than a grid, whose rows stay in place while the pointer or the focus is in it. */
export function AnchoredList<Row>({
  rows: fresh,
  keyOf,
  list = "",
  more = false,
  byTouch = true,
  children,
}: {
  rows: Row[];
  keyOf: (row: Row) => string;
  /** Identifies the list, for example by its filter: rows of another list are not held. */
  list?: string;
  more?: boolean;
  /** True if the rows are also held on touch screens; see `useHold`. */
  byTouch?: boolean;
  children: (rows: Row[], isGone: (row: Row) => boolean) => ReactNode;
}) {
  const { isHeld, handlers } = useHold(byTouch);
  const { rows, news, gone, take } = useAnchored(fresh, keyOf, { list, isHeld, more });
  return (
    <div className={css.list} {...handlers}>
      {/* The notice is positioned above the first row without moving the rows. */}
      <div className={css.above}>
        <News n={news} onTake={take} />
      </div>
      {children(rows, (row) => gone.has(keyOf(row)))}
    </div>
  );
}
