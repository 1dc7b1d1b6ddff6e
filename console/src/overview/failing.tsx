import { useWords } from "../messages/words.ts";
import { Nothing } from "../parts/state/notice.tsx";
import { AnchoredList } from "../parts/table/anchored-list.tsx";
import { RunLink, TaskLink } from "../parts/value/links.tsx";
import { plain } from "../parts/value/plain.ts";
import type { ListedRun } from "../runs/answers.ts";
import css from "./overview.module.css";

const listed = 8;

/** Groups failed runs by task, the task with the most failures first. */
export function failingOf(runs: ListedRun[]): [task: string, runs: ListedRun[]][] {
  const tasks = new Map<string, ListedRun[]>();
  for (const run of runs) tasks.set(run.task, [...(tasks.get(run.task) ?? []), run]);
  return [...tasks].sort(([, a], [, b]) => b.length - a.length);
}

/** Lists the tasks with the most failures, the highest number first. */
export function Failing({ runs }: { runs: ListedRun[] }) {
  const { t } = useWords();
  if (runs.length === 0) return <Nothing title={t("overview.noneFailing")}>{t("overview.noneFailingTold")}</Nothing>;
  const sorted = failingOf(runs).slice(0, listed);
  return (
    <AnchoredList rows={sorted} keyOf={([task]) => task} byTouch={false}>
      {(rows) => (
        <ul className={css.rows}>
          {rows.slice(0, listed).map(([task, [last, ...others]]) => (
            <li key={task}>
              <span className={`${css.times} figures`}>{others.length + 1} ×</span>
              <span className="cut">
                <TaskLink task={task} />
              </span>
              {last && <RunLink run={last.run} />}
              <span className={`${css.message} soft cut`} title={last?.error?.message}>
                {plain(last?.error?.message ?? last?.error?.code ?? "")}
              </span>
            </li>
          ))}
        </ul>
      )}
    </AnchoredList>
  );
}
