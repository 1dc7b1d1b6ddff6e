/** Small charts of a task's periods: ends of runs as bars, and the percentiles of a duration as lines. */
import { scaleLinear } from "d3-scale";
import type { ReactNode } from "react";
import { type Length, type Period, placesOf } from "./periods.ts";
import css from "./statistics.module.css";

const height = 80;
const wide = 400;

function Chart({ name, most, label, children }: { name: string; most: string; label: string; children: ReactNode }) {
  return (
    <figure className={css.chart}>
      <figcaption>
        {name} <span className="soft figures">{most}</span>
      </figcaption>
      <svg viewBox={`0 0 ${wide} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {children}
      </svg>
    </figure>
  );
}

interface Charted {
  periods: readonly Period[];
  by: Length;
  name: string;
  /** Formats a value of the vertical axis. */
  text: (value: number) => string;
}

/** Runs that succeeded, and on top of them those that failed. */
export function Ends({ periods, by, name, text }: Charted) {
  const most = Math.max(1, ...periods.map(({ counts }) => counts.succeeded + counts.failed));
  const tall = scaleLinear([0, most], [0, height]);
  const places = placesOf(periods, by);
  return (
    <Chart name={name} most={text(most)} label={`${name}: ${text(most)}`}>
      {periods.map(({ from, counts }, at) => {
        const place = places[at];
        if (!place) return null;
        const [x, width] = [place.from * wide, place.width * wide * 0.86];
        const [good, bad] = [tall(counts.succeeded), tall(counts.failed)];
        return (
          <g key={from}>
            <rect x={x} y={height - good} width={width} height={good} data-tone="ok" />
            <rect x={x} y={height - good - bad} width={width} height={bad} data-tone="bad" />
          </g>
        );
      })}
    </Chart>
  );
}

/** The percentiles p50, p90 and p99 of a duration. */
export function Spreads({ periods, by, name, text, of }: Charted & { of: "took" | "late" }) {
  const known = periods.flatMap((period) => (period[of] === null ? [] : [{ from: period.from, spread: period[of] }]));
  const most = known.length === 0 ? undefined : Math.max(1, ...known.map(({ spread }) => spread.p99));
  const y = scaleLinear([0, most ?? 1], [height - 1, 1]);
  const places = placesOf(periods, by);
  const placeAt = new Map(periods.map(({ from }, at) => [from, places[at]]));
  return (
    <Chart
      name={name}
      most={most === undefined ? "–" : text(most)}
      label={`${name}: ${most === undefined ? "–" : text(most)}`}
    >
      {(["p99", "p90", "p50"] as const).map((figure) => (
        <polyline
          key={figure}
          data-figure={figure}
          points={known
            .flatMap(({ from, spread }) => {
              const place = placeAt.get(from);
              if (!place) return [];
              const [left, right] = [place.from * wide, (place.from + place.width) * wide];
              return [`${left},${y(spread[figure])}`, `${right},${y(spread[figure])}`];
            })
            .join(" ")}
        />
      ))}
    </Chart>
  );
}
