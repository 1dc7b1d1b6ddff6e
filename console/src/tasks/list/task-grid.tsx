import { Link } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useAnswer } from "../../api/answers.ts";
import type { Answer } from "../../api/call.ts";
import { useWords } from "../../messages/words.ts";
import { StateMark, Tag } from "../../parts/state/mark.tsx";
import { type Column, Grid, type Selection } from "../../parts/table/grid.tsx";
import { TaskLink } from "../../parts/value/links.tsx";
import { Away } from "../../parts/value/moment.tsx";
import { type Schedule, scheduleWords } from "../schedule-words.ts";
import { type Recent, Strip } from "../strip.tsx";
import css from "./tasks.module.css";

type Task = Answer<"listTasks">["items"][number];

const stripRuns = 20;
const askedMost = 60;

export function TaskGrid({
  rows,
  onShown,
  ...rest
}: {
  rows: Task[];
  more: boolean;
  onMore: () => void;
  onShown: (from: number, to: number) => void;
  selection?: Selection;
}) {
  const words = useWords();
  const { t, language } = words;
  const [seen, setSeen] = useState<string[]>([]);
  const onSeen = useCallback(
    (names: string[], from: number) => {
      setSeen(names);
      onShown(from, from + names.length);
    },
    [onShown],
  );
  const strips = useStrips(seen);
  const columns = useMemo<Column<Task>[]>(
    () => [
      {
        id: "task",
        title: t("noun.task"),
        width: "minmax(160px, 2.2fr)",
        cell: (task) => (
          <span className={css.taskCell}>
            <TaskLink task={task.name} />
            {task.paused && (
              <span title={task.paused.why}>
                <Tag tone="wait">{t("task.paused")}</Tag>
              </span>
            )}
            <SchedulesLink task={task} />
          </span>
        ),
      },
      {
        id: "group",
        title: t("tasks.group"),
        width: "minmax(70px, 0.7fr)",
        cell: (task) => <span className="soft">{task.group}</span>,
      },
      {
        id: "words",
        title: t("tasks.when"),
        width: "minmax(180px, 2.6fr)",
        cell: (task) => {
          const said = scheduleWords(task.schedule as Schedule, task.words, language);
          return <span title={said}>{said}</span>;
        },
      },
      {
        id: "next",
        title: t("tasks.next"),
        width: "92px",
        cell: (task) => (task.next ? <Away at={task.next} /> : <span className="soft">–</span>),
      },
      {
        id: "strip",
        title: t("tasks.strip"),
        width: "140px",
        cell: (task) => <Strip runs={strips.get(task.name) ?? []} slots={stripRuns} />,
      },
      {
        id: "last",
        title: t("tasks.last"),
        width: "minmax(196px, 0.8fr)",
        cell: (task) => <LastResult run={strips.get(task.name)?.[0]} />,
      },
      {
        id: "failed",
        title: t("tasks.failed"),
        width: "72px",
        end: true,
        cell: (task) => (
          <span
            className="figures"
            style={task.counters.failed > 0 ? { color: "var(--c-bad)", fontWeight: 600 } : { color: "var(--c-soft)" }}
          >
            {words.count(task.counters.failed)}
          </span>
        ),
      },
    ],
    [t, language, words, strips],
  );
  return (
    <Grid
      label={t("screen.tasks")}
      rows={rows}
      keyOf={({ name }) => name}
      columns={columns}
      rowHeight={46}
      onSeen={onSeen}
      cardHeight={108}
      card={(task) => (
        <div className={css.card}>
          <div className={css.cardTop}>
            <span className="cut">
              <TaskLink task={task.name} />
            </span>
            {task.paused ? <Tag tone="wait">{t("task.paused")}</Tag> : task.next && <Away at={task.next} />}
          </div>
          <div className="soft cut">{scheduleWords(task.schedule as Schedule, task.words, language)}</div>
          <div className={css.cardTop}>
            <Strip runs={strips.get(task.name) ?? []} slots={stripRuns} height={22} />
            <LastResult run={strips.get(task.name)?.[0]} short />
          </div>
        </div>
      )}
      {...rest}
    />
  );
}

/** A link to a task's named schedules, if it has any. */
export function SchedulesLink({ task }: { task: Pick<Task, "name" | "schedules"> }) {
  const { t } = useWords();
  if (task.schedules === 0) return null;
  return (
    <Link to="/tasks" search={{ of: task.name }} className={css.schedules}>
      {t("tasks.schedules", { n: task.schedules })}
    </Link>
  );
}

function LastResult({ run, short = false }: { run: Recent | undefined; short?: boolean }) {
  if (!run) return <span className="soft">–</span>;
  return (
    <span className={css.last}>
      <StateMark state={run.state} />
      {!short && (
        <span className="soft">
          <Away at={run.ended} />
        </span>
      )}
    </span>
  );
}

/** Fetches the last runs of the visible tasks only; fetched runs are kept until they are fetched again. */
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
