/** Shows how a run spent its time: for each attempt the claim, the start and the end, relative to the due time. */
import { scaleLinear } from "d3-scale";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { Moment } from "../parts/value/moment.tsx";
import type { Run } from "./answers.ts";
import css from "./waterfall.module.css";

interface Lane {
  name: string;
  claimedMs: number;
  startedMs: number | null;
  endedMs: number;
  outcome: "succeeded" | "failed" | "running" | "other";
  detail: string;
}

const ms = (at: string | null): number | null => (at === null ? null : Date.parse(at));

export function lanesOf(run: Run, now: number, nameOf: (attempt: number) => string): Lane[] {
  const lanes: Lane[] = run.attempts.map((attempt) => ({
    name: nameOf(attempt.attempt),
    claimedMs: ms(attempt.claimed) ?? ms(attempt.started) ?? Date.parse(attempt.ended),
    startedMs: ms(attempt.started),
    endedMs: Date.parse(attempt.ended),
    outcome: attempt.outcome === "failed" ? ("failed" as const) : ("other" as const),
    detail: [attempt.node, attempt.error?.message].filter(Boolean).join(" · "),
  }));
  const claimedMs = ms(run.claimed) ?? ms(run.started);
  if (claimedMs !== null) {
    const outcome =
      run.ended === null ? "running" : run.state === "succeeded" || run.state === "failed" ? run.state : "other";
    lanes.push({
      name: nameOf(Math.max(1, run.attempt)),
      claimedMs,
      startedMs: ms(run.started),
      endedMs: ms(run.ended) ?? Math.max(now, claimedMs),
      outcome,
      detail: run.node ?? "",
    });
  }
  return lanes;
}

export function Waterfall({ run }: { run: Run }) {
  const { t, span, exact } = useWords();
  const now = useNow();
  const dueMs = Date.parse(run.due);
  const lanes = lanesOf(run, now, (attempt) => t("run.attemptOf", { attempt: String(attempt) }));
  if (lanes.length === 0) {
    const waits =
      dueMs > now ? t("run.waits", { span: span(dueMs - now) }) : t("run.overdue", { span: span(now - dueMs) });
    return <p className={css.waits}>{run.ended === null ? waits : t("run.neverStarted")}</p>;
  }
  const fromMs = Math.min(dueMs, ...lanes.map(({ claimedMs }) => claimedMs));
  const toMs = Math.max(...lanes.map(({ endedMs }) => endedMs), fromMs + 1);
  const percent = scaleLinear([fromMs, toMs], [0, 100]);
  const at = (time: number) => `${percent(time)}%`;
  const wide = (from: number, to: number) => `${Math.max(0.3, percent(to) - percent(from))}%`;
  return (
    <div>
      <ol className={css.lanes}>
        {lanes.map((lane, index) => {
          const waited = (lane.startedMs ?? lane.endedMs) - lane.claimedMs;
          const took = lane.startedMs === null ? 0 : lane.endedMs - lane.startedMs;
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: attempt numbers may repeat, positions do not.
            <li key={index}>
              <div className={css.name}>
                {lane.name}
                <span className="soft cut" title={lane.detail}>
                  {lane.detail}
                </span>
              </div>
              <div className={css.track}>
                <span className={css.due} style={{ left: at(dueMs) }} aria-hidden />
                <span
                  className={css.claimed}
                  style={{ left: at(lane.claimedMs), width: wide(lane.claimedMs, lane.startedMs ?? lane.endedMs) }}
                  title={`${t("run.claimed")} ${exact(lane.claimedMs)} · ${span(waited)}`}
                />
                {lane.startedMs !== null && (
                  <span
                    className={css.ran}
                    data-outcome={lane.outcome}
                    style={{ left: at(lane.startedMs), width: wide(lane.startedMs, lane.endedMs) }}
                    title={`${t("run.started")} ${exact(lane.startedMs)} · ${span(took)}`}
                  />
                )}
              </div>
              <div className={`${css.took} figures`}>{lane.startedMs === null ? t("run.notStarted") : span(took)}</div>
            </li>
          );
        })}
      </ol>
      <dl className={css.marks}>
        {(
          [
            ["run.created", run.created],
            ["run.due", run.due],
            ["run.claimed", run.claimed],
            ["run.started", run.started],
            ["run.ended", run.ended],
          ] as const
        ).map(([name, time], index, all) => {
          const before = all[index - 1]?.[1];
          const gap = time && before && index > 1 ? Date.parse(time) - Date.parse(before) : null;
          return (
            <div key={name} data-mark={name}>
              <dt>{t(name)}</dt>
              <dd className="figures">
                {time ? <Moment at={time} exact /> : "–"}
                {gap !== null && <small> {gap >= 0 ? `+${span(gap)}` : span(gap)}</small>}
              </dd>
            </div>
          );
        })}
      </dl>
    </div>
  );
}
