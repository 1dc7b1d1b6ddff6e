/** A chart of recently ended runs: each dot shows when a run ended and how late it started. The vertical scale is logarithmic. */
import { useNavigate } from "@tanstack/react-router";
import { scaleLinear, scaleLog } from "d3-scale";
import { useState } from "react";
import type { Answer } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { toneOf } from "../parts/state/mark.tsx";
import { Moment } from "../parts/value/moment.tsx";
import css from "./late-chart.module.css";
import { latenessOf } from "./lateness.ts";

type Run = Answer<"listRuns">["items"][number];

const height = 150;
const lines = [1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000];

export function LateChart({ runs }: { runs: Run[] }) {
  const words = useWords();
  const { t, span } = words;
  const navigate = useNavigate();
  const [pointed, setPointed] = useState<Run>();
  const dots = runs.flatMap((run) => {
    const late = latenessOf(run);
    return run.ended === null || late === null ? [] : [{ run, ms: Date.parse(run.ended), late: Math.max(1, late) }];
  });
  if (dots.length === 0) return <p className="soft">{t("overview.chartNone")}</p>;
  const from = Math.min(...dots.map(({ ms }) => ms));
  const to = Math.max(...dots.map(({ ms }) => ms), from + 1);
  const most = Math.max(1_000, ...dots.map(({ late }) => late)) * 1.5;
  const y = scaleLog([1, most], [height - 12, 12]);
  const percent = scaleLinear([from, to], [1, 99]);
  const worst = Math.max(...dots.map(({ late }) => late));
  return (
    <div className={css.chart}>
      <div className={css.scale} aria-hidden>
        {lines
          .filter((ms) => ms <= most)
          .map((ms) => (
            <span key={ms} style={{ top: y(ms) }}>
              {span(ms)}
            </span>
          ))}
      </div>
      <div className={css.field}>
        <svg
          width="100%"
          height={height}
          role="img"
          aria-label={t("overview.chartLabel", { n: dots.length, worst: span(worst) })}
          onPointerLeave={() => setPointed(undefined)}
        >
          {lines
            .filter((ms) => ms <= most)
            .map((ms) => (
              <line key={ms} x1="0" x2="100%" y1={y(ms)} y2={y(ms)} className={css.line} />
            ))}
          {dots.map(({ run, ms, late }) => (
            // biome-ignore lint/a11y/noStaticElementInteractions: the list of runs offers the same by keyboard.
            <circle
              key={run.run}
              cx={`${percent(ms)}%`}
              cy={y(late)}
              r={pointed === run ? 7 : run.state === "failed" ? 5 : 4}
              data-tone={late >= 1_000 && run.state === "succeeded" ? "late" : toneOf[run.state]}
              onPointerEnter={() => setPointed(run)}
              onClick={() => void navigate({ to: "/runs/$run", params: { run: String(run.run) } })}
            />
          ))}
        </svg>
        <div className={`${css.foot} figures`}>
          <Moment at={new Date(from).toISOString()} />
          <span className={css.pointed}>
            {pointed
              ? `${pointed.task} · ${pointed.run} · ${t(`state.${pointed.state}`)} · ${t("run.late")} ${span(latenessOf(pointed) ?? 0)}`
              : ""}
          </span>
          <Moment at={new Date(to).toISOString()} />
        </div>
      </div>
    </div>
  );
}
