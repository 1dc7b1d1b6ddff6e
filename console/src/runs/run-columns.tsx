import { useMemo } from "react";
import { useWords } from "../messages/words.ts";
import type { Column } from "../parts/table/grid.tsx";
import { RunLink, TaskLink } from "../parts/value/links.tsx";
import { Away } from "../parts/value/moment.tsx";
import type { ListedRun } from "./answers.ts";
import { Lateness, RunMark } from "./marks.tsx";
import { ErrorOrWhy } from "./why/listed.tsx";

/** @param ofTask true if all runs belong to one task; the column of the task is then omitted */
export function useRunColumns(ofTask: boolean): Column<ListedRun>[] {
  const words = useWords();
  const { t } = words;
  return useMemo<Column<ListedRun>[]>(
    () => [
      {
        id: "state",
        title: t("runs.state"),
        width: "116px",
        sortBy: ({ state }) => t(`state.${state}`),
        cell: (run) => <RunMark run={run} />,
      },
      ...(ofTask
        ? []
        : [
            {
              id: "task",
              title: t("noun.task"),
              width: "minmax(150px, 2.2fr)",
              sortBy: ({ task }: ListedRun) => task,
              cell: (run: ListedRun) => <TaskLink task={run.task} />,
            },
          ]),
      {
        id: "run",
        title: t("noun.run"),
        width: "92px",
        sortBy: ({ run }) => run,
        cell: (run) => <RunLink run={run.run} />,
      },
      {
        id: "due",
        title: t("run.due"),
        width: "minmax(120px, 1fr)",
        rank: 1,
        sortBy: ({ due }) => Date.parse(due),
        cell: (run) => <Away at={run.due} />,
      },
      {
        id: "late",
        title: t("run.late"),
        width: "84px",
        end: true,
        rank: 2,
        sortBy: ({ lateMs }) => lateMs,
        cell: (run) => <Lateness ms={run.lateMs} />,
      },
      {
        id: "took",
        title: t("run.took"),
        width: "76px",
        end: true,
        sortBy: ({ tookMs }) => tookMs,
        cell: (run) => <span className="figures">{run.tookMs === null ? "" : words.span(run.tookMs)}</span>,
      },
      {
        id: "attempt",
        title: t("run.attempt"),
        width: "84px",
        end: true,
        rank: 3,
        sortBy: ({ attempt }) => attempt,
        cell: (run) => <span className="figures">{run.attempt > 0 ? words.count(run.attempt) : ""}</span>,
      },
      {
        id: "node",
        title: t("noun.worker"),
        width: "minmax(90px, 1fr)",
        rank: 4,
        sortBy: ({ node }) => node,
        cell: (run) => (
          <span className="soft" title={run.node ?? undefined}>
            {run.node}
          </span>
        ),
      },
      {
        id: "error",
        title: t("why.column"),
        width: "minmax(80px, 4fr)",
        cell: (run) => <ErrorOrWhy run={run} />,
      },
    ],
    [t, words, ofTask],
  );
}
