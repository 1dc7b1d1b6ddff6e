/** Shows past runs and coming slots on one time axis, on both sides of the present time. */
import { useNavigate } from "@tanstack/react-router";
import { scaleLinear } from "d3-scale";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { toneOf } from "../parts/state/mark.tsx";
import css from "./axis.module.css";
import type { Recent } from "./strip.tsx";

const [width, height, line] = [1_000, 74, 40];
const shownAfter = 20;
const shownBefore = 40;

export function Axis({ runs, slots }: { runs: Recent[]; slots: string[] }) {
  const words = useWords();
  const { t } = words;
  const navigate = useNavigate();
  const now = useNow();
  const after = slots.slice(0, shownAfter).map(Date.parse);
  const before = runs.slice(0, shownBefore);
  const past = Math.min(now - 60_000, ...before.map(({ due }) => Date.parse(due)));
  const future = Math.max(now + 60_000, ...after);
  // Each side has its own scale: a task that ran for the first time an hour ago may fire next in a month.
  const middle = after.length === 0 ? 960 : before.length === 0 ? 60 : 560;
  const percent = scaleLinear([past, now, future], [1, middle / 10, (width - 12) / 10]);
  const label = t("task.axisLabel", { before: before.length, after: after.length });
  return (
    <div className={css.axis}>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        className={css.picture}
        role="img"
        aria-label={label}
      >
        <line x1={0} x2={middle} y1={line} y2={line} className={css.past} vectorEffect="non-scaling-stroke" />
        <line x1={middle} x2={width} y1={line} y2={line} className={css.future} vectorEffect="non-scaling-stroke" />
      </svg>
      {before.map((run) => (
        <button
          key={run.run}
          type="button"
          tabIndex={-1}
          aria-hidden
          className={css.ran}
          data-tone={toneOf[run.state]}
          style={{ left: `${percent(Date.parse(run.due))}%` }}
          title={`${run.run} · ${t(`state.${run.state}`)} · ${words.moment(Date.parse(run.due))}`}
          onClick={() => void navigate({ to: "/runs/$run", params: { run: String(run.run) } })}
        />
      ))}
      {after.map((ms) => (
        <span key={ms} className={css.comes} style={{ left: `${percent(ms)}%` }} title={words.moment(ms)} />
      ))}
      <span className={css.now} style={{ left: `${middle / 10}%` }}>
        {t("time.nowMark")}
      </span>
      <span className={`${css.end} figures`}>{before.length > 0 && words.away(past, now)}</span>
      <span className={`${css.end} ${css.right} figures`}>{after.length > 0 && words.away(future, now)}</span>
    </div>
  );
}
