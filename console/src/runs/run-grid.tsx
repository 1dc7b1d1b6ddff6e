import { useCallback, useState } from "react";
import { useWords } from "../messages/words.ts";
import { Grid, type Selection } from "../parts/table/grid.tsx";
import { RunLink, TaskLink } from "../parts/value/links.tsx";
import { Away } from "../parts/value/moment.tsx";
import type { ListedRun } from "./answers.ts";
import { RunMark } from "./marks.tsx";
import { useRunColumns } from "./run-columns.tsx";
import css from "./runs.module.css";
import { ErrorOrWhy, ExplainedRuns } from "./why/listed.tsx";
import { isWaiting } from "./why/why.tsx";

export function RunGrid({
  rows,
  list,
  more,
  onMore,
  onShown,
  ofTask = false,
  selection,
}: {
  rows: ListedRun[];
  list: string;
  more: boolean;
  onMore: () => void;
  onShown: (from: number, to: number) => void;
  ofTask?: boolean;
  selection?: Selection;
}) {
  const { t } = useWords();
  const columns = useRunColumns(ofTask);
  const [seen, setSeen] = useState<readonly string[]>([]);
  const onSeen = useCallback(
    (keys: string[], from: number, to: number) => {
      setSeen(keys);
      onShown(from, to);
    },
    [onShown],
  );
  return (
    <ExplainedRuns rows={rows} seen={seen}>
      <Grid
        name={ofTask ? "task-runs" : "runs"}
        list={list}
        label={t("screen.runs")}
        rows={rows}
        keyOf={({ run }) => String(run)}
        columns={columns}
        more={more}
        onMore={onMore}
        onSeen={onSeen}
        {...(selection ? { selection } : {})}
        card={(run) => <RunCard run={run} ofTask={ofTask} />}
      />
    </ExplainedRuns>
  );
}

/** A run on a narrow screen. */
function RunCard({ run, ofTask }: { run: ListedRun; ofTask: boolean }) {
  const { span } = useWords();
  return (
    <div className={css.card}>
      <div className={css.cardTop}>
        <RunMark run={run} />
        <RunLink run={run.run} />
      </div>
      <div className="cut">{ofTask ? (run.error?.message ?? run.node) : <TaskLink task={run.task} />}</div>
      <div className="soft cut">
        <Away at={run.ended ?? run.due} past={run.ended !== null} />
        {run.tookMs !== null && ` · ${span(run.tookMs)}`}
        {isWaiting(run) && (
          <>
            {" · "}
            <ErrorOrWhy run={run} />
          </>
        )}
      </div>
    </div>
  );
}
