import { useCallback, useEffect, useMemo, useState } from "react";
import { useAnswer } from "../../api/answers.ts";
import { useWords } from "../../messages/words.ts";
import { Grid, type Selection } from "../../parts/table/grid.tsx";
import type { Recent } from "../strip.tsx";
import { type ListedTask, stripRuns, TaskCard, useTaskColumns } from "./task-columns.tsx";

const askedMost = 60;

export function TaskGrid({
  rows,
  onShown,
  ...rest
}: {
  rows: ListedTask[];
  list: string;
  more: boolean;
  onMore: () => void;
  onShown: (from: number, to: number) => void;
  selection?: Selection;
}) {
  const { t } = useWords();
  const [seen, setSeen] = useState<string[]>([]);
  const onSeen = useCallback(
    (names: string[], from: number, to: number) => {
      setSeen(names);
      onShown(from, to);
    },
    [onShown],
  );
  const strips = useStrips(seen);
  const columns = useTaskColumns(
    strips,
    rows.some(({ owner }) => owner !== null),
  );
  return (
    <Grid
      name="tasks"
      label={t("screen.tasks")}
      rows={rows}
      keyOf={({ name }) => name}
      columns={columns}
      onSeen={onSeen}
      cardHeight={108}
      card={(task) => <TaskCard task={task} runs={strips.get(task.name)} />}
      {...rest}
    />
  );
}

/** Fetches the latest runs of the visible tasks, up to `askedMost`. Runs of tasks that are no longer visible remain in the map. */
function useStrips(seen: string[]): ReadonlyMap<string, Recent[]> {
  const asked = useMemo(() => seen.slice(0, askedMost), [seen]);
  const { data } = useAnswer(
    "listRecentRuns",
    { task: asked, each: stripRuns },
    { enabled: asked.length > 0, keep: true },
  );
  const [known, setKnown] = useState<ReadonlyMap<string, Recent[]>>(new Map());
  useEffect(() => {
    if (data) setKnown((before) => new Map([...before, ...data.tasks.map(({ task, runs }) => [task, runs] as const)]));
  }, [data]);
  return known;
}
