import { Autocomplete, Button, SegmentedControl } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay, IconSearch } from "@tabler/icons-react";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useAnswer } from "../api/answers.ts";
import type { Answer } from "../api/call.ts";
import { useMay } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { ChoiceBar, useChoice } from "../parts/choice.tsx";
import { Filters, GroupField, useTyped } from "../parts/filters.tsx";
import { type Column, Grid } from "../parts/grid.tsx";
import { TaskLink } from "../parts/links.tsx";
import { Away } from "../parts/moment.tsx";
import { Nothing, Shown } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { usePages } from "../parts/pages.ts";
import { StateMark, Tag } from "../parts/state.tsx";
import { type Recent, Strip } from "../parts/strip.tsx";
import type { Filter } from "../router.tsx";
import { Bulk, type BulkTarget } from "./bulk.tsx";
import { type Schedule, scheduleWords } from "./schedule-words.ts";
import { useTaskNames } from "./task-field.tsx";
import css from "./tasks.module.css";
import { Views } from "./views.tsx";

type Task = Answer<"listTasks">["items"][number];

const pageSize = 200;
/** Figures of runs that end without a word, as those of other servers a moment ago. */
const everyMs = 15_000;
const stripRuns = 20;
const askedMost = 60;

/** What one types is looked for anywhere in the name, unless it has a star itself. */
const globOf = (text: string) => (/[*?]/.test(text) ? text : `*${text}*`);

export function Tasks() {
  const { t } = useWords();
  const search = useSearch({ from: "/tasks" });
  const navigate = useNavigate({ from: "/tasks" });
  const may = useMay("operator");
  const filter = useCallback(
    (change: Filter) => void navigate({ search: (before: Filter) => ({ ...before, ...change }), replace: true }),
    [navigate],
  );
  const given = {
    limit: pageSize,
    ...(search.matching ? { matching: globOf(search.matching) } : {}),
    ...(search.group ? { group: search.group } : {}),
    ...(search.paused === "yes" ? { paused: true } : search.paused === "no" ? { paused: false } : {}),
  };
  const tasks = usePages("listTasks", given, { everyMs });
  const { chosen, choose, chooseNone } = useChoice(search);
  const [target, setTarget] = useState<BulkTarget>();
  const isFiltered = Object.keys(search).length > 0;
  const matched = {
    ...(search.matching ? { matching: globOf(search.matching) } : {}),
    ...(search.group ? { group: search.group } : {}),
    ...(search.matching || search.group ? {} : { all: true }),
  };
  return (
    <Page
      title={t("screen.tasks")}
      below={t("tasks.lead")}
      acts={<Views present={search} onTake={(view) => void navigate({ search: view })} />}
      fill
    >
      <Filters onClear={isFiltered ? () => void navigate({ search: {}, replace: true }) : undefined}>
        <NameField value={search.matching ?? ""} onChange={(matching) => filter({ matching })} />
        <GroupField value={search.group} onChange={(group) => filter({ group })} />
        <SegmentedControl
          aria-label={t("tasks.paused")}
          value={search.paused === "yes" || search.paused === "no" ? search.paused : ""}
          onChange={(paused) => filter({ paused })}
          data={[
            { value: "", label: t("tasks.all") },
            { value: "no", label: t("tasks.active") },
            { value: "yes", label: t("tasks.pausedOnes") },
          ]}
        />
      </Filters>
      {may && (tasks.data?.length ?? 0) > 0 && (
        <ChoiceBar
          isSome={chosen.size > 0}
          told={chosen.size > 0 ? t("tasks.chosen", { n: chosen.size }) : t("tasks.chooseTold")}
          onNone={chooseNone}
          acts={
            <>
              <Button
                size="compact-sm"
                variant="default"
                leftSection={<IconPlayerPause size={14} />}
                onClick={() => setTarget({ kind: "pause", tasks: [...chosen] })}
              >
                {t("task.pause")}
              </Button>
              <Button
                size="compact-sm"
                variant="default"
                leftSection={<IconPlayerPlay size={14} />}
                onClick={() => setTarget({ kind: "resume", tasks: [...chosen] })}
              >
                {t("task.resume")}
              </Button>
            </>
          }
          all={
            <>
              <span className="soft">{isFiltered ? t("tasks.matched") : t("tasks.everything")}</span>
              {/* What is paused already is not paused, nor the other way round: of such a list there is only the other act. */}
              {search.paused !== "yes" && (
                <Button
                  size="compact-sm"
                  variant="default"
                  onClick={() => setTarget({ kind: "pause", filter: matched })}
                >
                  {t("tasks.pauseAll")}
                </Button>
              )}
              {search.paused !== "no" && (
                <Button
                  size="compact-sm"
                  variant="default"
                  onClick={() => setTarget({ kind: "resume", filter: matched })}
                >
                  {t("tasks.resumeAll")}
                </Button>
              )}
            </>
          }
        />
      )}
      <Shown of={tasks} rows={12}>
        {(rows) =>
          rows.length > 0 ? (
            <TaskGrid
              rows={rows}
              more={tasks.more}
              onMore={tasks.onMore}
              onShown={tasks.onShown}
              {...(may ? { selection: { chosen, choose } } : {})}
            />
          ) : isFiltered ? (
            <Nothing title={t("tasks.noneMatch")}>{t("tasks.noneMatchTold")}</Nothing>
          ) : (
            <Nothing title={t("tasks.none")}>
              <p>{t("tasks.noneTold")}</p>
              <code>
                {'tower.task("hello", { schedule: every("5m") }, async (run) => {\n  run.log.info("hello");\n});'}
              </code>
            </Nothing>
          )
        }
      </Shown>
      {target && (
        <Bulk
          target={target}
          onClose={() => setTarget(undefined)}
          onDone={() => {
            setTarget(undefined);
            chooseNone();
          }}
        />
      )}
    </Page>
  );
}

/** Narrows the list while one types; names that there are complete it, unless it has a star. */
function NameField({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const { t } = useWords();
  const [text, setText] = useTyped(value, 180, onChange);
  const names = useTaskNames(/[*?]/.test(text) ? "" : text, value);
  return (
    <Autocomplete
      data-search
      className={css.name}
      aria-label={t("tasks.name")}
      placeholder={t("tasks.nameHint")}
      leftSection={<IconSearch size={16} aria-hidden />}
      value={text}
      maxLength={200}
      data={names.filter((name) => name !== text)}
      filter={({ options }) => options}
      // Inside the search's own landmark, where a screen reader looks for it.
      comboboxProps={{ withinPortal: false }}
      onChange={setText}
      onOptionSubmit={onChange}
    />
  );
}

function TaskGrid({
  rows,
  onShown,
  ...rest
}: {
  rows: Task[];
  more: boolean;
  onMore: () => void;
  onShown: (from: number, to: number) => void;
  selection?: { chosen: ReadonlySet<string>; choose: (names: string[], isChosen: boolean) => void };
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
        ...{ id: "task", title: t("noun.task"), width: "minmax(160px, 2.2fr)" },
        cell: (task) => (
          <span className={css.taskCell}>
            <TaskLink task={task.name} />
            {task.paused && (
              <span title={task.paused.why}>
                <Tag tone="wait">{t("task.paused")}</Tag>
              </span>
            )}
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
        ...{ id: "words", title: t("tasks.when"), width: "minmax(180px, 2.6fr)" },
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
        ...{ id: "last", title: t("tasks.last"), width: "minmax(196px, 0.8fr)" },
        cell: (task) => <LastResult run={strips.get(task.name)?.[0]} />,
      },
      {
        ...{ id: "failed", title: t("tasks.failed"), width: "72px", end: true },
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

/** The last runs of the tasks that are seen, and of no others: what was asked for once stays until it is asked for again. */
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
