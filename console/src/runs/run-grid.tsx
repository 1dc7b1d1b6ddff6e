import { useCallback, useMemo } from "react";
import { useWords } from "../messages/words.ts";
import { type Column, Grid, type Selection } from "../parts/table/grid.tsx";
import { RunLink, TaskLink } from "../parts/value/links.tsx";
import { Away } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import type { ListedRun } from "./answers.ts";
import { Lateness, RunMark } from "./marks.tsx";
import css from "./runs.module.css";

export function RunGrid({
  rows,
  more,
  onMore,
  onShown,
  ofTask = false,
  selection,
}: {
  rows: ListedRun[];
  more: boolean;
  onMore: () => void;
  onShown: (from: number, to: number) => void;
  ofTask?: boolean;
  selection?: Selection;
}) {
  const words = useWords();
  const { t } = words;
  const columns = useMemo<Column<ListedRun>[]>(
    () => [
      { id: "state", title: t("runs.state"), width: "128px", cell: (run) => <RunMark run={run} /> },
      ...(ofTask
        ? []
        : [
            {
              id: "task",
              title: t("noun.task"),
              width: "minmax(140px, 2.2fr)",
              cell: (run: ListedRun) => <TaskLink task={run.task} />,
            },
          ]),
      { id: "run", title: t("noun.run"), width: "92px", cell: (run) => <RunLink run={run.run} /> },
      { id: "due", title: t("run.due"), width: "minmax(96px, 1fr)", cell: (run) => <Away at={run.due} /> },
      { id: "late", title: t("run.late"), width: "84px", end: true, cell: (run) => <Lateness ms={run.lateMs} /> },
      {
        id: "took",
        title: t("run.took"),
        width: "86px",
        end: true,
        cell: (run) => <span className="figures">{run.tookMs === null ? "" : words.span(run.tookMs)}</span>,
      },
      {
        id: "attempt",
        title: t("run.attempt"),
        width: "64px",
        end: true,
        cell: (run) => <span className="figures">{run.attempt > 0 ? words.count(run.attempt) : ""}</span>,
      },
      {
        id: "node",
        title: t("noun.worker"),
        width: "minmax(90px, 1fr)",
        cell: (run) => <span className="soft">{run.node}</span>,
      },
      {
        id: "error",
        title: t("run.error"),
        width: "minmax(80px, 2fr)",
        cell: (run) => <span title={run.error?.message}>{plain(run.error?.message ?? "")}</span>,
      },
    ],
    [t, words, ofTask],
  );
  const onSeen = useCallback((keys: string[], from: number) => onShown(from, from + keys.length), [onShown]);
  return (
    <Grid
      label={t("screen.runs")}
      rows={rows}
      keyOf={({ run }) => String(run)}
      columns={columns}
      more={more}
      onMore={onMore}
      onSeen={onSeen}
      {...(selection ? { selection } : {})}
      card={(run) => (
        <div className={css.card}>
          <div className={css.cardTop}>
            <RunMark run={run} />
            <RunLink run={run.run} />
          </div>
          <div className="cut">{ofTask ? (run.error?.message ?? run.node) : <TaskLink task={run.task} />}</div>
          <div className="soft">
            <Away at={run.ended ?? run.due} />
            {run.tookMs !== null && ` · ${words.span(run.tookMs)}`}
          </div>
        </div>
      )}
    />
  );
}
