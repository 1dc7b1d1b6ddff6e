/** How long the last runs took, and how late they began: bars from the oldest to the latest, the lateness as a line of its own. */
import { useState } from "react";
import { useWords } from "../messages/words.ts";
import { toneOf } from "../parts/state.tsx";
import type { Recent } from "../parts/strip.tsx";
import css from "./durations.module.css";

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
  const mostLate = Math.max(1, late.at(-1) ?? 1);
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
        viewBox={`0 0 ${Math.max(1, shown.length) * 10} ${chartHeight}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={summary}
        onPointerLeave={() => setAt(undefined)}
      >
        {shown.map((run, index) => {
          const tall = Math.max(2, ((run.tookMs ?? 0) / most) * (chartHeight - 26));
          const lateTall = Math.max(run.lateMs === null ? 0 : 1, (Math.max(0, run.lateMs ?? 0) / mostLate) * 18);
          return (
            <g key={run.run} onPointerEnter={() => setAt(index)} data-pointed={at === index || undefined}>
              <rect x={index * 10} y={0} width={10} height={chartHeight} className={css.field} />
              <rect
                x={index * 10 + 1}
                y={chartHeight - 24 - tall}
                width={8}
                height={tall}
                data-tone={toneOf[run.state]}
              />
              <rect x={index * 10 + 1} y={chartHeight - 18} width={8} height={lateTall} className={css.late} />
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
