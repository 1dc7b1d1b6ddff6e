import { type Figures, rounded } from "../measure/figures.ts";
import { type Report, summary } from "../measure/report.ts";

export type Better = "more" | "less";

/** The medians of one call of a bench, from its last line. */
export interface Line {
  question: string;
  carillon: Figures;
  peers: Record<string, Figures>;
  limit: Figures;
}

export interface Ratio {
  figure: string;
  /** "limit", or the name of the best peer. */
  to: string;
  own: number;
  other: number;
  /** How many times better Carillon's figure is; below 1 it is worse. */
  times: number;
}

/** Carillon's figures compared with the best peer's, and with the limit. */
export function ratios({ carillon, peers, limit }: Line, compared: Record<string, Better>): Ratio[] {
  return Object.entries(compared).flatMap(([figure, better]) => {
    const own = carillon[figure];
    if (own === undefined) return [];
    const times = (other: number) => (better === "more" ? own / other : other / own);
    const theirs = Object.entries(peers).flatMap(([who, figures]) => {
      // A peer has no separate figure without history, so Carillon's figure without history is compared with the peer's only
      // figure.
      const value = figures[figure] ?? figures[figure.replace("_no_history", "")];
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

/** @param isOwn whether the other side is not a peer but Carillon, used in another way */
export function ratioText({ figure, to, own, other, times }: Ratio, isOwn: boolean): string {
  const beside = to === "limit" || isOwn ? `the ${to}, ${other}` : `the best peer, ${to}, ${other}`;
  return `${figure}: ${own}, ${rounded(Number(times.toPrecision(3)))} times as good as ${beside}`;
}
