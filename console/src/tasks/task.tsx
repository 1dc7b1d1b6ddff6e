import { Tabs } from "@mantine/core";
import { IconPlayerPause } from "@tabler/icons-react";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useAnswer } from "../api/answers.ts";
import { TaskFlow } from "../flow/task-flow-code.ts";
import { useWords } from "../messages/words.ts";
import { CopyCurl } from "../parts/form/copy-curl.tsx";
import { Card, Page } from "../parts/layout/page.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { Nothing, Shown, Trouble } from "../parts/state/notice.tsx";
import { useChoice } from "../parts/table/choice.tsx";
import { usePages } from "../parts/table/pages.ts";
import { TaskLink } from "../parts/value/links.tsx";
import { Away, Moment } from "../parts/value/moment.tsx";
import { Tree } from "../parts/value/tree.tsx";
import { CompareBar } from "../runs/compare/compare-button.tsx";
import { RunGrid } from "../runs/run-grid.tsx";
import { Acts } from "./acts.tsx";
import type { Task } from "./answers.ts";
import { SchedulesLink } from "./list/task-columns.tsx";
import { Releases } from "./releases.tsx";
import { type Schedule, scheduleWords } from "./schedule-words.ts";
import { StatisticsOfTask } from "./statistics/statistics.tsx";
import css from "./task.module.css";
import { TaskOverview } from "./task-overview.tsx";
import { Versions } from "./versions.tsx";

/** The schedule's own zone; undefined if it has none. */
const zoneOf = (schedule: unknown) => (schedule as { zone?: string }).zone;

const parts = ["overview", "runs", "flow", "statistics", "versions", "definition"] as const;

export function TaskScreen() {
  const words = useWords();
  const { t } = words;
  const { task: name } = useParams({ from: "/tasks/$task" });
  const { part = "overview" } = useSearch({ from: "/tasks/$task" });
  const navigate = useNavigate({ from: "/tasks/$task" });
  const task = useAnswer("getTask", { task: name });
  return (
    <Page
      title={name}
      above={<Link to="/tasks">{t("screen.tasks")}</Link>}
      below={
        task.data && (
          <span className={css.under}>
            {task.data.of !== null && (
              <span>
                {t("task.of")} <TaskLink task={task.data.of} />
              </span>
            )}
            <span>{scheduleWords(task.data.schedule as Schedule, task.data.words, words)}</span>
            {task.data.paused ? (
              <Tag tone="late">{t("task.paused")}</Tag>
            ) : (
              task.data.next && (
                <span>
                  {t("task.next")} <Away at={task.data.next} zone={zoneOf(task.data.schedule)} />
                </span>
              )
            )}
            <SchedulesLink task={task.data} />
          </span>
        )
      }
      acts={
        task.data && (
          <>
            <CopyCurl id="getTask" given={{ task: name }} />
            <Acts task={task.data} />
          </>
        )
      }
    >
      {task.data?.paused && <Paused paused={task.data.paused} />}
      {task.error && !task.data ? (
        <Trouble error={task.error} again={() => void task.refetch()} />
      ) : (
        // The parts are rendered before the task is known: their own reads need only its name.
        <Tabs
          value={(parts as readonly string[]).includes(part) ? part : "overview"}
          onChange={(next) => void navigate({ search: next === "overview" ? {} : { part: next ?? undefined } })}
          keepMounted={false}
          classNames={{ panel: css.panel ?? "" }}
        >
          <Tabs.List className={css.tabs ?? ""}>
            {parts.map((one) => (
              <Tabs.Tab key={one} value={one}>
                {t(`task.part.${one}`)}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          <Tabs.Panel value="overview">
            <TaskOverview name={name} of={task} />
          </Tabs.Panel>
          <Tabs.Panel value="runs">
            <TaskRuns task={name} />
          </Tabs.Panel>
          <Tabs.Panel value="flow">
            <TaskFlow task={name} />
          </Tabs.Panel>
          <Tabs.Panel value="statistics">
            <StatisticsOfTask task={name} />
          </Tabs.Panel>
          <Tabs.Panel value="versions">
            <div className={css.versions}>
              <Releases task={name} />
              <Versions name={name} of={task} />
            </div>
          </Tabs.Panel>
          <Tabs.Panel value="definition">
            <Card title={t("task.part.definition")} more={<span className="soft">{t("task.definitionTold")}</span>}>
              <Shown of={task}>
                {({ definition }) => <Tree value={definition} label={t("task.part.definition")} />}
              </Shown>
            </Card>
          </Tabs.Panel>
        </Tabs>
      )}
    </Page>
  );
}

function Paused({ paused: { by, at, until, why } }: { paused: NonNullable<Task["paused"]> }) {
  const { t } = useWords();
  return (
    <div className={css.paused} role="note">
      <IconPlayerPause size={18} aria-hidden />
      <span>
        {t("task.pausedBy", { by })} <Moment at={at} />
        {until !== null && (
          <>
            {" · "}
            {t("task.pausedUntil")} <Moment at={until} />
          </>
        )}
        {why !== "" && <> · {why}</>}
      </span>
    </div>
  );
}

const pageSize = 100;
const everyMs = 4_000;

function TaskRuns({ task }: { task: string }) {
  const { t } = useWords();
  const runs = usePages("listRuns", { task, limit: pageSize }, { everyMs });
  const { chosen, choose, chooseNone } = useChoice({ task });
  return (
    <div className={css.runs}>
      <CompareBar rows={runs.data ?? []} chosen={chosen} onNone={chooseNone} />
      <Shown of={runs} rows={10}>
        {(rows) =>
          rows.length === 0 ? (
            <Nothing title={t("task.noRuns")}>{t("task.noRunsTold")}</Nothing>
          ) : (
            <RunGrid
              rows={rows}
              list={runs.list}
              more={runs.more}
              onMore={runs.onMore}
              onShown={runs.onShown}
              ofTask
              selection={{ chosen, choose }}
            />
          )
        }
      </Shown>
    </div>
  );
}
