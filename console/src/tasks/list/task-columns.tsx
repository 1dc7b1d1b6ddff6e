import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Answer } from "../../api/call.ts";
import { useWords } from "../../messages/words.ts";
import { StateMark, Tag } from "../../parts/state/mark.tsx";
import type { Column } from "../../parts/table/grid.tsx";
import { TaskLink } from "../../parts/value/links.tsx";
import { Away } from "../../parts/value/moment.tsx";
import { type Schedule, scheduleWords } from "../schedule-words.ts";
import { type Recent, Strip } from "../strip.tsx";
import css from "./tasks.module.css";

export type ListedTask = Answer<"listTasks">["items"][number];

/** The number of last runs that are shown of each task. */
export const stripRuns = 20;

/**
 * @param strips the last runs of each task, by its name
 * @param owned true if any of the tasks has an owner; otherwise there is no column of owners
 */
export function useTaskColumns(strips: ReadonlyMap<string, Recent[]>, owned: boolean): Column<ListedTask>[] {
  const words = useWords();
  const { t } = words;
  return useMemo<Column<ListedTask>[]>(
    () => [
      {
        id: "task",
        title: t("noun.task"),
        width: "minmax(160px, 2.2fr)",
        sortBy: ({ name }) => name,
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
        rank: 5,
        sortBy: ({ group }) => group,
        cell: (task) => (
          <span className="soft" title={task.group}>
            {task.group}
          </span>
        ),
      },
      ...(owned ? [ownerColumn(t("tasks.owner"))] : []),
      {
        id: "words",
        title: t("tasks.when"),
        width: "minmax(120px, 2.6fr)",
        rank: 2,
        cell: (task) => {
          const said = scheduleWords(task.schedule as Schedule, task.words, words);
          return <span title={said}>{said}</span>;
        },
      },
      {
        id: "next",
        title: t("tasks.next"),
        width: "120px",
        sortBy: ({ next }) => (next === null ? null : Date.parse(next)),
        cell: (task) => (task.next ? <Away at={task.next} /> : <span className="soft">–</span>),
      },
      {
        id: "strip",
        title: t("tasks.strip"),
        width: "138px",
        rank: 4,
        cell: (task) => <Strip runs={strips.get(task.name)} slots={stripRuns} />,
      },
      {
        id: "last",
        title: t("tasks.last"),
        width: "minmax(214px, 0.8fr)",
        cell: (task) => <LastResult runs={strips.get(task.name)} />,
      },
      {
        id: "failed",
        title: t("tasks.failed"),
        width: "64px",
        end: true,
        rank: 3,
        sortBy: ({ counters }) => counters.failed,
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
    [t, words, strips, owned],
  );
}

const ownerColumn = (title: string): Column<ListedTask> => ({
  id: "owner",
  title,
  width: "minmax(70px, 0.7fr)",
  rank: 6,
  sortBy: ({ owner }) => owner,
  cell: ({ owner }) =>
    owner === null ? (
      <span className="soft">–</span>
    ) : (
      <Link to="/tasks" search={{ owner }} title={owner}>
        {owner}
      </Link>
    ),
});

/** A task on a narrow screen. @param runs its last runs; undefined: not known yet */
export function TaskCard({ task, runs }: { task: ListedTask; runs: Recent[] | undefined }) {
  const words = useWords();
  return (
    <div className={css.card}>
      <div className={css.cardTop}>
        <span className="cut">
          <TaskLink task={task.name} />
        </span>
        {task.paused ? <Tag tone="wait">{words.t("task.paused")}</Tag> : task.next && <Away at={task.next} />}
      </div>
      <div className="soft cut">{scheduleWords(task.schedule as Schedule, task.words, words)}</div>
      <div className={css.cardTop}>
        <Strip runs={runs} slots={stripRuns} height={22} />
        <LastResult runs={runs} short />
      </div>
    </div>
  );
}

/** A link to a task's named schedules, if it has any. */
export function SchedulesLink({ task }: { task: Pick<ListedTask, "name" | "schedules"> }) {
  const { t } = useWords();
  if (task.schedules === 0) return null;
  return (
    <Link to="/tasks" search={{ of: task.name }} className={css.schedules}>
      {t("tasks.schedules", { n: task.schedules })}
    </Link>
  );
}

/** @param runs undefined: not known yet */
function LastResult({ runs, short = false }: { runs: Recent[] | undefined; short?: boolean }) {
  if (!runs) return <span className="soft">…</span>;
  const [run] = runs;
  if (!run) return <span className="soft">–</span>;
  return (
    <span className={css.last}>
      <StateMark state={run.state} />
      {!short && (
        <span className="soft">
          <Away at={run.ended} past />
        </span>
      )}
    </span>
  );
}
