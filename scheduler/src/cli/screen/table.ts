import { type Paint, type Style, uncoloured } from "./style.ts";
import { cut, pad, widthOf } from "./text.ts";

export interface Column {
  title: string;
  align?: "left" | "right";
  /** The least width to which the column may be narrowed; absent: the column is never narrowed. */
  least?: number;
  /**
   * If the table is too wide after narrowing, columns with `drop` are left out, the highest number first; absent: the column always stays.
   */
  drop?: number;
}

/** A cell of a table. The caller makes the text safe to print with `plain`. */
export type Cell = string | { text: string; paint: Paint };

const gap = 2;
const textOf = (cell: Cell | undefined) => (cell === undefined ? "" : typeof cell === "string" ? cell : cell.text);

/**
 * Returns the table's lines, none wider than `width`. Columns with `least` are narrowed first, then columns with `drop` are
 * left out, and what still does not fit is cut off.
 */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  { width = Number.POSITIVE_INFINITY, style = uncoloured }: { width?: number; style?: Style } = {},
): string[] {
  const natural = columns.map(({ title }, at) =>
    Math.max(widthOf(title), ...rows.map((row) => widthOf(textOf(row[at])))),
  );
  // A column whose cells are all empty is left out.
  let shown = columns
    .map((_, at) => at)
    .filter((at) => rows.length === 0 || rows.some((row) => textOf(row[at]) !== ""));
  let widths = fitted(columns, natural, shown, width);
  while (widths === undefined) {
    const given = shown.filter((at) => columns[at]?.drop !== undefined);
    if (given.length === 0) {
      widths = new Map(shown.map((at) => [at, columns[at]?.least ?? (natural[at] as number)]));
      break;
    }
    const first = given.reduce((a, b) => ((columns[b]?.drop ?? 0) > (columns[a]?.drop ?? 0) ? b : a));
    shown = shown.filter((at) => at !== first);
    widths = fitted(columns, natural, shown, width);
  }
  const last = shown.at(-1);
  const line = (cells: readonly Cell[], over?: Paint) => {
    let room = width;
    return shown
      .map((at) => {
        const { align = "left" } = columns[at] as Column;
        const cell = cells[at];
        const text = cut(textOf(cell), Math.min(widths.get(at) as number, Math.max(0, room)));
        room -= (widths.get(at) as number) + gap;
        const padded = at === last && align === "left" ? text : pad(text, widths.get(at) as number, align);
        const paint = over ?? (typeof cell === "object" ? cell.paint : undefined);
        return paint === undefined || text === "" ? padded : padded.replace(text, () => paint(text));
      })
      .join(" ".repeat(gap))
      .trimEnd();
  };
  const head = columns.some(({ title }) => title !== "")
    ? [
        line(
          columns.map(({ title }) => title),
          style.dim,
        ),
      ]
    : [];
  return [...head, ...rows.map((row) => line(row))];
}

/**
 * Returns a width for each shown column, so that all fit into `width`; undefined if they do not fit even at their least widths.
 */
function fitted(
  columns: readonly Column[],
  natural: number[],
  shown: number[],
  width: number,
): Map<number, number> | undefined {
  const widths = new Map(shown.map((at) => [at, natural[at] as number]));
  let over = [...widths.values()].reduce((sum, one) => sum + one, 0) + gap * Math.max(0, shown.length - 1) - width;
  while (over > 0) {
    // The widest column is narrowed first, so that short columns remain uncut where possible.
    const room = (at: number) => (widths.get(at) as number) - (columns[at]?.least ?? Number.POSITIVE_INFINITY);
    const giving = shown.filter((at) => room(at) > 0);
    if (giving.length === 0) return undefined;
    const widest = giving.reduce((a, b) => ((widths.get(b) as number) > (widths.get(a) as number) ? b : a));
    widths.set(widest, (widths.get(widest) as number) - 1);
    over -= 1;
  }
  return widths;
}
