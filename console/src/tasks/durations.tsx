/** Shows the durations of the last runs as bars, oldest first, and below them their start delays as smaller bars. */
import { scaleBand, scaleLinear } from "d3-scale";
import { useState } from "react";
import { useWords } from "../messages/words.ts";
import { toneOf } from "../parts/state/mark.tsx";
import css from "./durations.module.css";
import type { Recent } from "./strip.tsx";

const chartHeight = 96;

const quantile = (sorted: number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;

export function Durations({ runs }: { runs: Recent[] }) {
  const { t, span } = useWords();
  const [at, setAt] = useState<number>();
  const shown = [...runs].reverse();
  const took = runs.flatMap(({ tookMs }) => tookMs ?? []).sort((a, b) => a - b);
  const late = runs.flatMap(({ lateMs }) => lateMs ?? []).sort((a, b) => a - b);
  const most = Math.max(1, took.at(-1) ?? 1);
  const tall = scaleLinear([0, most], [0, chartHeight - 26]);
  const lateTall = scaleLinear([0, Math.max(1, late.at(-1) ?? 1)], [0, 18]);
  const wide = Math.max(1, shown.length) * 10;
  const x = scaleBand(
    shown.map(({ run }) => run),
    [0, wide],
  )
    .paddingInner(0.2)
    .paddingOuter(0.1);
  const pointed = at === undefined ? undefined : shown[at];
  const summary = t("task.durationsLabel", {
    n: runs.length,
    middle: span(quantile(took, 0.5)),
    most: span(most),
    late: span(quantile(late, 0.95)),
  });
  return (
    <div>
      <dl className={css.figures}>
        <div>
          <dt>{t("task.tookMiddle")}</dt>
          <dd>{span(quantile(took, 0.5))}</dd>
        </div>
        <div>
          <dt>{t("task.tookMost")}</dt>
          <dd>{span(most)}</dd>
        </div>
        <div>
          <dt>{t("task.lateMost")}</dt>
          <dd>{span(quantile(late, 0.95))}</dd>
        </div>
      </dl>
      <svg
        className={css.chart}
        viewBox={`0 0 ${wide} ${chartHeight}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={summary}
        onPointerLeave={() => setAt(undefined)}
      >
        {shown.map((run, index) => {
          const left = x(run.run) ?? 0;
          const its = Math.max(2, tall(run.tookMs ?? 0));
          const itsLate = Math.max(run.lateMs === null ? 0 : 1, lateTall(Math.max(0, run.lateMs ?? 0)));
          return (
            <g key={run.run} onPointerEnter={() => setAt(index)} data-pointed={at === index || undefined}>
              <rect x={index * x.step()} y={0} width={x.step()} height={chartHeight} className={css.field} />
              <rect
                x={left}
                y={chartHeight - 24 - its}
                width={x.bandwidth()}
                height={its}
                data-tone={toneOf[run.state]}
              />
              <rect x={left} y={chartHeight - 18} width={x.bandwidth()} height={itsLate} className={css.late} />
            </g>
          );
        })}
      </svg>
      <p className={`${css.told} figures`}>
        {pointed
          ? `${pointed.run} · ${t(`state.${pointed.state}`)} · ${t("run.took")} ${pointed.tookMs === null ? "–" : span(pointed.tookMs)} · ${t("run.late")} ${pointed.lateMs === null ? "–" : span(Math.max(0, pointed.lateMs))}`
          : t("task.durationsTold")}
      </p>
    </div>
  );
}
