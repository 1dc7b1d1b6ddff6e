/** The reasons of recent failures: for each the number of runs, its first and last occurrence, and the release that introduced it. */
import { Link } from "@tanstack/react-router";
import { useAnswer } from "../api/answers.ts";
import type { Answer } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Card } from "../parts/layout/page.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { Shown } from "../parts/state/notice.tsx";
import { AnchoredList } from "../parts/table/anchored-list.tsx";
import { RunLink, TaskLink } from "../parts/value/links.tsx";
import { Away, Moment } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import css from "./errors.module.css";

type Errors = Answer<"listErrors">;
type Group = Errors["groups"][number];

const everyMs = 15_000;
const shownMost = 8;

/** @param task only the errors of this task; undefined: of all tasks */
export function ErrorsCard({ task }: { task?: string }) {
  const { t } = useWords();
  const errors = useAnswer("listErrors", task === undefined ? {} : { task }, { everyMs });
  // Most tasks have no errors; the card is then left out.
  if (errors.data === undefined ? !errors.error : errors.data.groups.length === 0) return null;
  return (
    <Card
      title={t("errors.title")}
      more={
        errors.data && (
          <span className="soft">
            {t("errors.since")} <Moment at={errors.data.from} />
          </span>
        )
      }
    >
      <Shown of={errors} rows={3}>
        {(data) => <Groups errors={data} ofTask={task !== undefined} />}
      </Shown>
    </Card>
  );
}

function Groups({ errors: { groups, groupCount }, ofTask }: { errors: Errors; ofTask: boolean }) {
  const { t } = useWords();
  return (
    <AnchoredList rows={groups.slice(0, shownMost)} keyOf={({ fingerprint }) => fingerprint} byTouch={false}>
      {(rows) => (
        <>
          <ul className={css.groups}>
            {rows.map((group) => (
              <li key={group.fingerprint}>
                <GroupRow group={group} ofTask={ofTask} />
              </li>
            ))}
          </ul>
          {groupCount > rows.length && <p className="soft">{t("tree.rest", { n: groupCount - rows.length })}</p>}
        </>
      )}
    </AnchoredList>
  );
}

function GroupRow({ group, ofTask }: { group: Group; ofTask: boolean }) {
  const { t, count } = useWords();
  const { reason, runs, first, last, lastRun, tasks, taskCount, broughtBy, trend } = group;
  const words = reason === null ? t("errors.forgotten") : plain(reason.words || reason.code);
  return (
    <>
      <span className={`${css.times} figures`}>{count(runs)} ×</span>
      <Trend trend={trend} />
      <div className={css.what}>
        <div className={css.words} title={words}>
          {reason !== null && reason.code !== "" && reason.words !== "" && <b>{reason.code} </b>}
          {words}
        </div>
        <div className={`${css.facts} soft`}>
          {!ofTask && tasks[0] !== undefined && (
            <span>
              <TaskLink task={tasks[0]} />
              {taskCount > 1 && ` ${t("errors.moreTasks", { n: taskCount - 1 })}`}
            </span>
          )}
          <span>
            {t("errors.first")} <Away at={first} past />
          </span>
          <span>
            {t("errors.last")} <Away at={last} past /> <RunLink run={lastRun} />
          </span>
          <Link to="/runs/$run/compare" params={{ run: String(lastRun) }}>
            {t("compare.previous")}
          </Link>
          {broughtBy !== null && <Tag tone="late">{t("errors.broughtBy", { release: plain(broughtBy) })}</Tag>}
        </div>
      </div>
    </>
  );
}

const [barWidth, gap, height] = [3, 1, 26];

/** A bar chart of the failures in equal intervals of time, the latest at the right. */
function Trend({ trend }: { trend: number[] }) {
  const { t } = useWords();
  const most = Math.max(1, ...trend);
  const half = Math.floor(trend.length / 2);
  const sum = (part: number[]) => part.reduce((all, n) => all + n, 0);
  const width = trend.length * (barWidth + gap);
  return (
    <svg
      className={css.trend}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={t("errors.trend", { before: sum(trend.slice(0, half)), after: sum(trend.slice(half)) })}
    >
      {trend.map((n, at) => {
        const tall = n === 0 ? 1 : 3 + (n / most) * (height - 3);
        return (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: the intervals have no key but their position.
            key={at}
            x={at * (barWidth + gap)}
            y={height - tall}
            width={barWidth}
            height={tall}
            data-some={n > 0 || undefined}
          />
        );
      })}
    </svg>
  );
}
