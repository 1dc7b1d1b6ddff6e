/**
 * The state of the cluster for a screen on a wall: large, without controls. While the server or its store is away, no figure is shown as
 * if it were current.
 */
import { useEffect } from "react";
import { useWords } from "../messages/words.ts";
import { startsOf } from "../overview/coming.tsx";
import { useCounts } from "../overview/counts.ts";
import { failingOf } from "../overview/failing.tsx";
import { type Counted, type Figures, useFigures } from "../overview/figures.ts";
import { useTroubles, worstOf } from "../overview/verdict.tsx";
import { useKnown } from "../parts/state/known.ts";
import type { Tone } from "../parts/state/mark.tsx";
import { useAwake } from "./awake.ts";
import css from "./wallboard.module.css";

const listed = 5;

export function Wallboard() {
  const { t, clock } = useWords();
  const figures = useFigures();
  const { ready, live, ended, failed, dead, alarms, workers, cluster, coming, now } = figures;
  const known = useKnown([ready, live, ended, failed, dead, alarms, workers, cluster, coming]);
  useAwake();
  const title = t("wallboard.title");
  useEffect(() => {
    document.title = `${title} · Carillon`;
  }, [title]);
  return (
    <main className={css.board} data-known={known.isKnown}>
      <header className={css.head}>
        <h1>{known.isKnown ? <Said figures={figures} /> : known.isLost ? t("known.title") : t("notice.loading")}</h1>
        <time className="figures">{clock(now)}</time>
      </header>
      {known.isKnown ? (
        <Board figures={figures} />
      ) : (
        <p className={css.lost} role="status">
          {known.isLost && known.told}
        </p>
      )}
    </main>
  );
}

function Said({ figures }: { figures: Figures }) {
  const { t } = useWords();
  const worst = worstOf(useTroubles(figures));
  return <span data-tone={worst}>{t(`overview.is.${worst}`)}</span>;
}

function Board({ figures }: { figures: Figures }) {
  const { t, span, count, minute, away } = useWords();
  const { least } = useCounts();
  const troubles = useTroubles(figures);
  const {
    overdue,
    overdueRuns,
    saidMs,
    running,
    failures,
    working,
    letters,
    lateMost,
    isAlone,
    failed,
    ready,
    coming,
    now,
  } = figures;
  const tone = ({ n }: Counted, bad: Tone): Tone => (n > 0 ? bad : "ok");
  const starts = startsOf({ coming: coming.data?.coming ?? [], ready: ready.data?.items ?? [], now });
  const failing = failingOf(failed.data?.items ?? []);
  return (
    <>
      {troubles.length > 0 && (
        <ul className={css.troubles}>
          {troubles.map(({ tone, text }) => (
            <li key={text} data-tone={tone}>
              {text}
            </li>
          ))}
        </ul>
      )}
      <dl className={css.figures}>
        <Figure name={t("overview.overdue")} value={least(overdue)} tone={tone(overdue, "bad")} />
        <Figure
          name={t("overview.late")}
          value={lateMost === null ? "–" : span(lateMost)}
          tone={(lateMost ?? 0) > 1_000 ? "late" : "ok"}
        />
        <Figure name={t("overview.running")} value={least(running)} tone="ok" />
        <Figure name={t("wallboard.failed")} value={least(failures)} tone={tone(failures, "bad")} />
        <Figure name={t("overview.dead")} value={count(letters)} tone={letters > 0 ? "late" : "ok"} />
        <Figure name={t("overview.workers")} value={least(working)} tone={isAlone ? "bad" : "ok"} />
      </dl>
      <div className={css.lists}>
        <List
          title={t("overview.failing")}
          none={t("overview.noneFailing")}
          rows={failing.map(([task, runs]) => [task, `${runs.length} ×`])}
        />
        <List
          title={t("overview.overdue")}
          none={t("wallboard.noneLate")}
          rows={overdueRuns.map(({ task, due }) => [task, span(saidMs - Date.parse(due))])}
        />
        <List
          title={t("overview.next")}
          none={t("overview.nothingNext")}
          rows={starts.map(({ task, at }) => [task, `${minute(Date.parse(at))} · ${away(Date.parse(at), now)}`])}
        />
      </div>
    </>
  );
}

function Figure({ name, value, tone }: { name: string; value: string; tone: Tone }) {
  return (
    <div data-tone={tone}>
      <dt>{name}</dt>
      <dd className="figures">{value}</dd>
    </div>
  );
}

function List({ title, none, rows }: { title: string; none: string; rows: [task: string, more: string][] }) {
  return (
    <section className={css.list}>
      <h2>{title}</h2>
      {rows.length === 0 ? (
        <p className="soft">{none}</p>
      ) : (
        <ol>
          {rows.slice(0, listed).map(([task, more], at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a task may be in the list more than once.
            <li key={at}>
              <span className="cut">{task}</span>
              <span className="figures">{more}</span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
