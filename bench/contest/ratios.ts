import { type Figures, rounded } from "../measure/figures.ts";
import { type Report, summary } from "../measure/report.ts";

export type Better = "more" | "less";

/** The median figures of one call of a bench, as in the last line of its output. */
export interface Line {
  question: string;
  carillon: Figures;
  peers: Record<string, Figures>;
  limit: Figures;
}

export interface Ratio {
  figure: string;
  /** "limit", or the name of the peer with the best figure. */
  to: string;
  own: number;
  other: number;
  /** Carillon's figure divided by the other's, or the inverse if less is better; below 1 Carillon is worse. */
  times: number;
}

/** Compares Carillon's figures with those of the best peer, and with the limit. */
export function ratios({ carillon, peers, limit }: Line, compared: Record<string, Better>): Ratio[] {
  return Object.entries(compared).flatMap(([figure, better]) => {
    const own = carillon[figure];
    if (own === undefined) return [];
    const times = (other: number) => (better === "more" ? own / other : other / own);
    const theirs = Object.entries(peers).flatMap(([who, figures]) => {
      // A peer may have no separate figure without history, or with relaxed durability. Carillon's `_no_history` or `_relaxed` figure is
      // then compared with the peer's plain figure.
      const value = figures[figure] ?? figures[figure.replace(/_(?:no_history|relaxed)$/, "")];
      return value === undefined ? [] : [{ to: who, other: value }];
    });
    theirs.sort((a, b) => times(a.other) - times(b.other));
    const bound = limit[figure] ?? limit[figure.replace("_2_processes", "")];
    const others = [...theirs.slice(0, 1), ...(bound === undefined ? [] : [{ to: "limit", other: bound }])];
    return others.map(({ to, other }) => ({ figure, to, own, other, times: times(other) }));
  });
}

export function lineOf({ question, carillon, peers, limit }: Report): Line {
  const medians = Object.entries(peers).map(([who, runs]) => [who, summary(runs)] as const);
  return { question, carillon: summary(carillon), peers: Object.fromEntries(medians), limit: summary(limit) };
}

/** @param isOwn true if `to` is Carillon with other settings, not a peer */
export function ratioText({ figure, to, own, other, times }: Ratio, isOwn: boolean): string {
  const beside = to === "limit" || isOwn ? `the ${to}, ${other}` : `the best peer, ${to}, ${other}`;
  return `${figure}: ${own}, ${rounded(Number(times.toPrecision(3)))} times as good as ${beside}`;
}
