import { SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { useAnswer } from "../../api/answers.ts";
import { useWords, type Words } from "../../messages/words.ts";
import { useNow } from "../../now.ts";
import { Card } from "../../parts/layout/page.tsx";
import { Nothing, Shown } from "../../parts/state/notice.tsx";
import { Table } from "../../parts/table/table.tsx";
import { Moment } from "../../parts/value/moment.tsx";
import { Ends, Spreads } from "./chart.tsx";
import { type Length, lengths, type Period, type Statistics, sinceOf, successOf } from "./periods.ts";
import css from "./statistics.module.css";

const everyMs = 60_000;

/** The statistics of a task by hour, day or month: ends of runs, durations and lateness, and what has become worse. */
export function StatisticsOfTask({ task }: { task: string }) {
  const { t } = useWords();
  const [by, setBy] = useState<Length>("day");
  const since = sinceOf(by, useNow());
  const found = useAnswer("getTaskStatistics", { task, by, ...(since ? { since } : {}) }, { everyMs, keep: true });
  return (
    <div className={css.statistics}>
      <SegmentedControl
        className={css.by}
        aria-label={t("statistics.by")}
        value={by}
        onChange={(next) => setBy(next as Length)}
        data={lengths.map((one) => ({ value: one, label: t(`statistics.by.${one}`) }))}
      />
      <Shown of={found} rows={8}>
        {(data) =>
          data.periods.length === 0 ? (
            <Nothing title={t("statistics.none")}>{t("statistics.noneTold")}</Nothing>
          ) : (
            <Figures statistics={data} by={by} />
          )
        }
      </Shown>
    </div>
  );
}

function Figures({ statistics: { periods, worse, timesUntil }, by }: { statistics: Statistics; by: Length }) {
  const { t, span, count } = useWords();
  return (
    <>
      {worse.length > 0 && <Worse worse={worse} />}
      <Card
        title={t("statistics.title")}
        more={
          <span className="soft">
            {t("statistics.lines")}
            {timesUntil !== null && (
              <>
                {" · "}
                {t("statistics.until")} <Moment at={timesUntil} />
              </>
            )}
          </span>
        }
      >
        <div className={css.charts}>
          <Ends periods={periods} by={by} name={t("statistics.ends")} text={count} />
          <Spreads periods={periods} by={by} name={t("run.took")} text={span} of="took" />
          <Spreads periods={periods} by={by} name={t("run.late")} text={span} of="late" />
        </div>
      </Card>
      <Card title={t(`statistics.by.${by}`)} more={<span className="soft">{t("statistics.utc")}</span>} tight>
        <Rows periods={periods} by={by} />
      </Card>
    </>
  );
}

function Worse({ worse }: { worse: Statistics["worse"] }) {
  const { t, span, percent } = useWords();
  return (
    <section className={css.worse} aria-label={t("statistics.worse")}>
      <strong>{t("statistics.worse")}</strong>
      <ul>
        {worse.map(({ figure, was, is }) => {
          const text = figure === "failed" ? percent : span;
          return <li key={figure}>{t(`statistics.worse.${figure}`, { was: text(was), is: text(is) })}</li>;
        })}
      </ul>
    </section>
  );
}

/** Formats the beginning of a period: an hour in the viewer's zone; a day or a month in UTC, because these begin at midnight UTC. */
function fromText(from: string, by: Length, words: Words): string {
  const ms = Date.parse(from);
  const at = new Date(ms);
  if (by === "month") return `${words.monthName(at.getUTCFullYear(), at.getUTCMonth())} ${at.getUTCFullYear()}`;
  return by === "day" ? words.day(ms, "UTC") : words.when(ms);
}

function Rows({ periods, by }: { periods: readonly Period[]; by: Length }) {
  const words = useWords();
  const { t, span, count, percent } = words;
  const figures = ["p50", "p90", "p99"] as const;
  const of = (figure: (typeof figures)[number], name: string) => `${name} ${figure}`;
  return (
    <Table
      label={t("statistics.title")}
      className={css.rows}
      heads={[
        t("statistics.from"),
        t("counter.succeeded"),
        t("counter.failed"),
        t("statistics.success"),
        t("counter.missed"),
        ...figures.map((figure) => of(figure, t("run.took"))),
        ...figures.map((figure) => of(figure, t("run.late"))),
      ]}
    >
      {[...periods].reverse().map((period) => {
        const success = successOf(period);
        return (
          <tr key={period.from}>
            <th scope="row">{fromText(period.from, by, words)}</th>
            <td className="figures">{count(period.counts.succeeded)}</td>
            <td className="figures" data-bad={period.counts.failed > 0 || undefined}>
              {count(period.counts.failed)}
            </td>
            <td className="figures">{success === null ? "–" : percent(success)}</td>
            <td className="figures">{count(period.counts.missed)}</td>
            {figures.map((figure) => (
              <td key={figure} className="figures">
                {period.took === null ? "–" : span(period.took[figure])}
              </td>
            ))}
            {figures.map((figure) => (
              <td key={figure} className="figures">
                {period.late === null ? "–" : span(period.late[figure])}
              </td>
            ))}
          </tr>
        );
      })}
    </Table>
  );
}
