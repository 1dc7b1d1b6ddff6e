import type { Answer } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Nothing } from "../parts/state/notice.tsx";
import { AnchoredList } from "../parts/table/anchored-list.tsx";
import { TaskLink } from "../parts/value/links.tsx";
import { Away, Moment } from "../parts/value/moment.tsx";
import type { ListedRun } from "../runs/answers.ts";
import css from "./overview.module.css";

const listed = 8;

interface Starts {
  coming: Answer<"listComing">["coming"];
  ready: ListedRun[];
  now: number;
}

/** The next starts by time: runs that are already planned (`ready`), and later slots (`coming`). Each task appears once. */
export function startsOf({ coming, ready, now }: Starts): { task: string; at: string }[] {
  const soon = [
    ...ready.filter(({ due }) => Date.parse(due) >= now - 1_000).map(({ task, due }) => ({ task, at: due })),
    ...coming.filter(({ next }) => Date.parse(next) >= now - 1_000).map(({ task, next }) => ({ task, at: next })),
  ].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  // Each task appears once, at its next slot, because a task that fires every second would fill the list.
  const seen = new Set<string>();
  return soon.filter(({ task }) => !seen.has(task) && seen.add(task));
}

export function Coming(starts: Starts) {
  const { t } = useWords();
  const shown = startsOf(starts).slice(0, listed);
  if (shown.length === 0) return <Nothing title={t("overview.nothingNext")}>{t("overview.nothingNextTold")}</Nothing>;
  return (
    <AnchoredList rows={shown} keyOf={({ task, at }) => `${task} ${at}`} byTouch={false}>
      {(rows) => (
        <ul className={css.rows}>
          {rows.slice(0, listed).map(({ task, at }) => (
            <li key={`${task} ${at}`}>
              <span className={css.when}>
                <Moment at={at} short />
              </span>
              <span className="cut">
                <TaskLink task={task} />
              </span>
              <span className="soft">
                <Away at={at} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </AnchoredList>
  );
}
