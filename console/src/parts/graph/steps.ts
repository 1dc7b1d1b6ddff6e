import type { Direction, Line, Point } from "./layout.ts";

/** The keys that move from node to node. */
export type Way = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

export const isWay = (key: string): key is Way => /^Arrow(?:Left|Right|Up|Down)$/.test(key);

/** How much more a step to the side counts than a step ahead. */
const asideWeight = 3;

/**
 * The node that an arrow key leads to; undefined if there is none in that direction. In the direction of the lines and against it, nodes
 * that are joined by a line come before all others.
 */
export function nodeTowards(
  way: Way,
  from: string,
  { places, lines, direction }: { places: ReadonlyMap<string, Point>; lines: readonly Line[]; direction: Direction },
): string | undefined {
  const here = places.get(from);
  if (!here) return undefined;
  const isAcross = way === "ArrowLeft" || way === "ArrowRight";
  const sign = way === "ArrowLeft" || way === "ArrowUp" ? -1 : 1;
  const alongLines = isAcross === (direction === "right");
  const joined = new Set(lines.flatMap(({ from: a, to: b }) => (a === from ? [b] : b === from ? [a] : [])));
  const rated = [...places].flatMap(([id, { x, y }]) => {
    const [ahead, aside] = isAcross ? [x - here.x, y - here.y] : [y - here.y, x - here.x];
    if (ahead * sign <= 0) return [];
    return [{ id, first: alongLines && joined.has(id), cost: ahead * sign + asideWeight * Math.abs(aside) }];
  });
  rated.sort((a, b) => Number(b.first) - Number(a.first) || a.cost - b.cost);
  return rated[0]?.id;
}
