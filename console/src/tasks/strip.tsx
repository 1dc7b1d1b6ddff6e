/**
 * The last runs as a row of bars, oldest first: colour and pattern show how each run ended, height how long it took; a failed run's bar has
 * the full height.
 */
import type { Answer } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { toneOf } from "../parts/state/mark.tsx";
import css from "./strip.module.css";

export type Recent = Answer<"listRecentRuns">["tasks"][number]["runs"][number];

const barWidth = 5;
const gap = 2;

/** @param runs undefined: not known yet */
export function Strip({
  runs,
  slots = 20,
  height = 24,
}: {
  runs: Recent[] | undefined;
  slots?: number;
  height?: number;
}) {
  const { t, span } = useWords();
  const shown = (runs ?? []).slice(0, slots).reverse();
  const longest = Math.max(1, ...shown.map(({ tookMs }) => tookMs ?? 0));
  const failed = shown.filter(({ state }) => state === "failed").length;
  const width = slots * (barWidth + gap) - gap;
  const label =
    runs === undefined
      ? t("known.not")
      : shown.length === 0
        ? t("strip.none")
        : t("strip.label", { n: shown.length, failed });
  return (
    <svg
      className={css.strip}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={label}
    >
      {Array.from({ length: slots - shown.length }, (_, at) => (
        <rect
          // biome-ignore lint/suspicious/noArrayIndexKey: the empty places have no key but their position.
          key={at}
          x={at * (barWidth + gap)}
          y={height - 3}
          width={barWidth}
          height={3}
          rx={1.5}
          className={css.none}
        />
      ))}
      {shown.map((run, at) => {
        const share = Math.log1p(run.tookMs ?? 0) / Math.log1p(longest);
        const tall = run.state === "failed" ? height : 7 + share * (height - 7);
        return (
          <rect
            key={run.run}
            x={(slots - shown.length + at) * (barWidth + gap)}
            y={height - tall}
            width={barWidth}
            height={tall}
            rx={1.5}
            data-tone={toneOf[run.state]}
          >
            <title>{`${run.run} · ${t(`state.${run.state}`)}${run.tookMs === null ? "" : ` · ${span(run.tookMs)}`}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}
