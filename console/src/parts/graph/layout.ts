/** Places the nodes of a directed graph in layers: no line goes against the direction, and few lines cross. */
import { graphlib, layout } from "@dagrejs/dagre";

export interface Line {
  from: string;
  to: string;
  /** The text at the middle of the line, for which the layout leaves room. */
  word?: string | undefined;
}
export interface Point {
  x: number;
  y: number;
}
/** The direction from causes to effects. */
export type Direction = "right" | "down";

export interface Laid {
  width: number;
  height: number;
  /** The centre of each node, by its id. */
  places: ReadonlyMap<string, Point>;
  /** The bends of each line, in the order of the lines. */
  bends: readonly (readonly Point[])[];
}

export interface Box {
  width: number;
  height: number;
}

const margin = 14;
/**
 * The space that is reserved for a line's text: 11 px letters, with some space around them. A Chinese character is wider, but Chinese texts
 * are shorter.
 */
const letterWidth = 8;
const wordHeight = 18;

export function laid(ids: readonly string[], lines: readonly Line[], box: Box, direction: Direction): Laid {
  const graph = new graphlib.Graph();
  graph.setGraph({
    rankdir: direction === "right" ? "LR" : "TB",
    nodesep: 14,
    ranksep: 52,
    marginx: margin,
    marginy: margin,
    // The default ranker takes longer for the same picture.
    ranker: "tight-tree",
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of ids) graph.setNode(id, { ...box });
  for (const { from, to, word } of lines)
    graph.setEdge(from, to, word === undefined ? {} : { width: word.length * letterWidth, height: wordHeight });
  layout(graph);
  const side = ({ x, y }: Point, sign: 1 | -1): Point =>
    direction === "right" ? { x: x + (sign * box.width) / 2, y } : { x, y: y + (sign * box.height) / 2 };
  const { width = 0, height = 0 } = graph.graph();
  return {
    width,
    height,
    places: new Map(ids.map((id) => [id, pointOf(graph.node(id))])),
    bends: lines.map(({ from, to }) => {
      // The ends of the library's lines point to the nodes' centres; here a line leaves and arrives at the middle of a side.
      const inner = (graph.edge(from, to).points ?? []).slice(1, -1).map(pointOf);
      return [side(graph.node(from), 1), ...inner, side(graph.node(to), -1)];
    }),
  };
}

const pointOf = ({ x, y }: Point): Point => ({ x, y });

/** The path of a line through its bends, as a smooth curve that leaves and arrives in the graph's direction. */
export function curve(bends: readonly Point[], direction: Direction): string {
  const [first, ...rest] = bends;
  if (!first) return "";
  const at = ({ x, y }: Point) => `${Math.round(x * 10) / 10} ${Math.round(y * 10) / 10}`;
  let path = `M${at(first)}`;
  let from = first;
  for (const to of rest) {
    const half = direction === "right" ? (to.x - from.x) / 2 : (to.y - from.y) / 2;
    const [leave, arrive] =
      direction === "right"
        ? [
            { x: from.x + half, y: from.y },
            { x: to.x - half, y: to.y },
          ]
        : [
            { x: from.x, y: from.y + half },
            { x: to.x, y: to.y - half },
          ];
    path += `C${at(leave)} ${at(arrive)} ${at(to)}`;
    from = to;
  }
  return path;
}
