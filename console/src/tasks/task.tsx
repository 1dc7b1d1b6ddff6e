import { Button, Menu, Tabs } from "@mantine/core";
import {
  IconArrowBackUp,
  IconDots,
  IconEdit,
  IconHistory,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlayerPlayFilled,
  IconTrash,
} from "@tabler/icons-react";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { type Answer, call } from "../api/call.ts";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Away, Moment } from "../parts/moment.tsx";
import { Nothing, Shown, Waiting } from "../parts/notice.tsx";
import { Card, Page } from "../parts/page.tsx";
import { usePages } from "../parts/pages.ts";
import { Tag } from "../parts/state.tsx";
import { toast } from "../parts/toasts.tsx";
import { Tree } from "../parts/tree.tsx";
import { RunGrid } from "../runs/runs.tsx";
import { mayComeAgain, optionsAgain } from "./again.ts";
import { Backfill } from "./backfill.tsx";
import { RunNow } from "./run-now.tsx";
import { type Schedule, scheduleWords } from "./schedule-words.ts";
import css from "./task.module.css";
import { TaskOverview } from "./task-overview.tsx";
import { Versions } from "./versions.tsx";

export type Task = Answer<"getTask">;

const Edit = lazy(() => import("./edit.tsx").then(({ Edit }) => ({ default: Edit })));

const parts = ["overview", "runs", "versions", "definition"] as const;

export function TaskScreen() {
  const { t, language } = useWords();
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
            <span>{scheduleWords(task.data.schedule as Schedule, task.data.words, language)}</span>
            {task.data.paused ? (
              <Tag tone="late">{t("task.paused")}</Tag>
            ) : (
              task.data.next && (
                <span>
                  {t("task.next")} <Away at={task.data.next} />
                </span>
              )
            )}
          </span>
        )
      }
      acts={task.data && <Acts task={task.data} />}
    >
      <Shown of={task}>
        {(data) => (
          <>
            {data.paused && (
              <div className={css.paused} role="note">
                <IconPlayerPause size={18} aria-hidden />
                <span>
                  {t("task.pausedBy", { by: data.paused.by })} <Moment at={data.paused.at} />
                  {data.paused.why !== "" && <> · {data.paused.why}</>}
                </span>
              </div>
            )}
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
                <TaskOverview task={data} />
              </Tabs.Panel>
              <Tabs.Panel value="runs">
                <TaskRuns task={name} />
              </Tabs.Panel>
              <Tabs.Panel value="versions">
                <Versions task={data} />
              </Tabs.Panel>
              <Tabs.Panel value="definition">
                <Card title={t("task.part.definition")} more={<span className="soft">{t("task.definitionTold")}</span>}>
                  <Tree value={data.definition} label={t("task.part.definition")} />
                </Card>
              </Tabs.Panel>
            </Tabs>
          </>
        )}
      </Shown>
    </Page>
  );
}

const pageSize = 100;
const everyMs = 4_000;

function TaskRuns({ task }: { task: string }) {
  const { t } = useWords();
  const runs = usePages("listRuns", { task, limit: pageSize }, { everyMs });
  return (
    <div className={css.runs}>
      <Shown of={runs} rows={10}>
        {(rows) =>
          rows.length === 0 ? (
            <Nothing title={t("task.noRuns")}>{t("task.noRunsTold")}</Nothing>
          ) : (
            <RunGrid rows={rows} more={runs.more} onMore={runs.onMore} onShown={runs.onShown} ofTask />
          )
        }
      </Shown>
    </div>
  );
}

type Act = "run" | "pause" | "edit" | "backfill" | "revert" | "remove";

/** Slots that can be told beforehand: others have none in the past to run. */
const hasSlots = ({ type, mode }: { type: string; mode?: string }) =>
  type === "cron" || type === "at" || (type === "every" && mode !== "delay");

function Acts({ task }: { task: Task }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const mayRun = useReach("operator").on(task.name);
  const mayEdit = useReach("editor").on(task.name);
  /** With the task as it was read then: a form is filled from it, and a change is made from its version. */
  const [open, setOpen] = useState<{ act: Act; read: Task }>();
  const setAct = (next: Act) => setOpen({ act: next, read: task });
  const close = () => setOpen(undefined);
  const { name } = task;
  const failed = (error: unknown) =>
    toast({ failed: true, text: error instanceof Error ? error.message : String(error) });
  const changed = () => outdate("getTask", "listTasks", "listUpcomingSlots", "listTaskVersions", "listComing");
  const resume = async () => {
    try {
      await call("resumeTask", { task: name });
      changed();
      toast({ text: t("task.resumed", { task: name }) });
    } catch (error) {
      failed(error);
    }
  };
  /** What the task was before its edits were reverted, as another version. */
  const editAgain = async (version: number, ifVersion: number) => {
    try {
      await call("revertTask", { task: name, version }, { ifVersion });
      changed();
      toast({ text: t("versions.reverted", { version: String(version) }) });
    } catch (error) {
      failed(error);
    }
  };
  const createAgain = async () => {
    try {
      await call("createTask", { task: name, options: await optionsAgain(task) });
      changed();
      toast({ text: t("task.again", { task: name }) });
      void navigate({ to: "/tasks/$task", params: { task: name } });
    } catch (error) {
      failed(error);
    }
  };
  if (!mayRun) return null;
  return (
    <>
      <Button leftSection={<IconPlayerPlayFilled size={15} aria-hidden />} onClick={() => setAct("run")}>
        {t("task.runNow")}
      </Button>
      {task.paused ? (
        <Button variant="default" leftSection={<IconPlayerPlay size={16} aria-hidden />} onClick={() => void resume()}>
          {t("task.resume")}
        </Button>
      ) : (
        <Button
          variant="default"
          leftSection={<IconPlayerPause size={16} aria-hidden />}
          onClick={() => setAct("pause")}
        >
          {t("task.pause")}
        </Button>
      )}
      {mayEdit && (
        <Button variant="default" leftSection={<IconEdit size={16} aria-hidden />} onClick={() => setAct("edit")}>
          {t("task.edit")}
        </Button>
      )}
      <Menu position="bottom-end" width={250}>
        <Menu.Target>
          <Button variant="default" px={9} aria-label={t("act.more")}>
            <IconDots size={17} />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            disabled={!hasSlots(task.schedule as { type: string; mode?: string })}
            leftSection={<IconHistory size={15} />}
            onClick={() => setAct("backfill")}
          >
            {t("backfill.open")}
          </Menu.Item>
          {mayEdit && (
            <>
              <Menu.Item
                disabled={task.edited.length === 0}
                leftSection={<IconArrowBackUp size={15} />}
                onClick={() => setAct("revert")}
              >
                {t("task.revertEdits")}
              </Menu.Item>
              <Menu.Item c="var(--c-bad)" leftSection={<IconTrash size={15} />} onClick={() => setAct("remove")}>
                {t("task.remove")}
              </Menu.Item>
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      {open?.act === "run" && <RunNow task={open.read} onClose={close} />}
      {open?.act === "edit" && (
        <Suspense fallback={<Waiting rows={1} />}>
          <Edit task={open.read} present={task.version} onClose={close} />
        </Suspense>
      )}
      {open?.act === "backfill" && <Backfill task={name} onClose={close} />}
      {open?.act === "pause" && (
        <Confirm
          title={t("task.pauseTitle", { task: name })}
          consequence={t("task.pauseTold")}
          act={t("task.pause")}
          onDo={async ({ reason, key }) => {
            const { running } = await call("pauseTask", { task: name, reason }, { key });
            changed();
            toast({
              text: t(running.length > 0 ? "task.pausedRunning" : "task.pausedDone", { task: name, n: running.length }),
              undo: () => void resume(),
            });
          }}
          onClose={close}
        />
      )}
      {open?.act === "revert" && (
        <Confirm
          title={t("task.revertEdits")}
          consequence={t("task.revertTold", { parts: open.read.edited.join(", ") })}
          act={t("task.revert")}
          onDo={async ({ reason, key }) => {
            const { version: from } = open.read;
            const { version } = await call("revertTask", { task: name, reason }, { key, ifVersion: from });
            changed();
            toast({ text: t("task.reverted", { task: name }), undo: () => void editAgain(from, version) });
          }}
          onClose={close}
        />
      )}
      {open?.act === "remove" && (
        <Confirm
          title={t("task.removeTitle", { task: name })}
          consequence={t("task.removeTold")}
          act={t("task.remove")}
          grave
          onDo={async ({ reason, key, signal }) => {
            await call("removeTask", { task: name, reason }, { key });
            changed();
            toast({
              text: t("task.removed", { task: name }),
              ...(mayComeAgain(task) ? { undo: () => void createAgain() } : {}),
            });
            if (!signal.aborted) void navigate({ to: "/tasks" });
          }}
          onClose={close}
        />
      )}
    </>
  );
}
