import { MultiSelect } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import type { Answer } from "../api/call.ts";
import { useMay } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { useChoice } from "../parts/choice.tsx";
import { Filters } from "../parts/filters.tsx";
import { type Column, Grid, type Selection } from "../parts/grid.tsx";
import { RunLink, TaskLink } from "../parts/links.tsx";
import { Away } from "../parts/moment.tsx";
import { Nothing, Shown } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { usePages } from "../parts/pages.ts";
import { plain } from "../parts/plain.ts";
import { type RunState, StateMark, shownState } from "../parts/state.tsx";
import { TimeField } from "../parts/time-field.tsx";
import type { Filter } from "../router.tsx";
import { TaskField } from "../tasks/task-field.tsx";
import { RunBulk } from "./bulk.tsx";
import css from "./runs.module.css";

export type Run = Answer<"listRuns">["items"][number];

const states: RunState[] = [
  "ready",
  "claimed",
  "held",
  "paused",
  "undecided",
  "succeeded",
  "failed",
  "cancelled",
  "skipped",
];
const pageSize = 100;
/** What starts and is claimed no event tells. */
const everyMs = 4_000;

export const isState = (text: string): text is RunState => (states as string[]).includes(text);

export function Runs() {
  const { t } = useWords();
  const search = useSearch({ from: "/runs" });
  const navigate = useNavigate({ from: "/runs" });
  const picked = useMemo(() => (search.state ?? "").split(",").filter(isState), [search.state]);
  const filter = (change: Filter) =>
    void navigate({ search: (before: Filter) => ({ ...before, ...change }), replace: true });
  const runs = usePages(
    "listRuns",
    {
      limit: pageSize,
      ...(search.task ? { task: search.task } : {}),
      ...(picked.length > 0 ? { state: picked } : {}),
      ...(search.since ? { since: search.since } : {}),
      ...(search.until ? { until: search.until } : {}),
    },
    { everyMs },
  );
  const isFiltered = Object.keys(search).length > 0;
  const may = useMay("operator");
  const { chosen, choose, chooseNone } = useChoice(search);
  return (
    <Page title={t("screen.runs")} below={t("runs.lead")} fill>
      <Filters onClear={isFiltered ? () => void navigate({ search: {}, replace: true }) : undefined}>
        <TaskField value={search.task ?? ""} onChange={(task) => filter({ task })} />
        <MultiSelect
          className={css.states}
          aria-label={t("runs.state")}
          placeholder={picked.length === 0 ? t("runs.anyState") : ""}
          data={states.map((state) => ({ value: state, label: t(`state.${state}`) }))}
          value={picked}
          onChange={(states) => filter({ state: states.join(",") })}
          clearable
          clearButtonProps={{ "aria-label": t("filter.clear") }}
        />
        <TimeField label={t("runs.since")} value={search.since} onChange={(since) => filter({ since })} />
        <TimeField label={t("runs.until")} value={search.until} onChange={(until) => filter({ until })} />
      </Filters>
      {may && <RunBulk rows={runs.data ?? []} chosen={chosen} search={search} states={picked} onNone={chooseNone} />}
      <Shown of={runs} rows={12}>
        {(rows) =>
          rows.length > 0 ? (
            <RunGrid
              rows={rows}
              more={runs.more}
              onMore={runs.onMore}
              onShown={runs.onShown}
              {...(may ? { selection: { chosen, choose } } : {})}
            />
          ) : isFiltered ? (
            <Nothing title={t("runs.noneMatch")}>{t("runs.noneMatchTold")}</Nothing>
          ) : (
            <Nothing title={t("runs.none")}>
              {t("runs.noneTold")} <code>carillon tasks run NAME</code>
            </Nothing>
          )
        }
      </Shown>
    </Page>
  );
}

export function RunGrid({
  rows,
  more,
  onMore,
  onShown,
  ofTask = false,
  selection,
}: {
  rows: Run[];
  more: boolean;
  onMore: () => void;
  onShown: (from: number, to: number) => void;
  ofTask?: boolean;
  selection?: Selection;
}) {
  const words = useWords();
  const { t } = words;
  const columns = useMemo<Column<Run>[]>(
    () => [
      { id: "state", title: t("runs.state"), width: "128px", cell: (run) => <RunMark run={run} /> },
      ...(ofTask
        ? []
        : [
            {
              id: "task",
              title: t("noun.task"),
              width: "minmax(140px, 2.2fr)",
              cell: (run: Run) => <TaskLink task={run.task} />,
            },
          ]),
      { id: "run", title: t("noun.run"), width: "92px", cell: (run) => <RunLink run={run.run} /> },
      { id: "due", title: t("run.due"), width: "minmax(96px, 1fr)", cell: (run) => <Away at={run.due} /> },
      { id: "late", title: t("run.late"), width: "84px", end: true, cell: (run) => <Lateness ms={run.lateMs} /> },
      {
        ...{ id: "took", title: t("run.took"), width: "86px", end: true },
        cell: (run) => <span className="figures">{run.tookMs === null ? "" : words.span(run.tookMs)}</span>,
      },
      {
        ...{ id: "attempt", title: t("run.attempt"), width: "64px", end: true },
        cell: (run) => <span className="figures">{run.attempt > 0 ? words.count(run.attempt) : ""}</span>,
      },
      {
        id: "node",
        title: t("noun.worker"),
        width: "minmax(90px, 1fr)",
        cell: (run) => <span className="soft">{run.node}</span>,
      },
      {
        ...{ id: "error", title: t("run.error"), width: "minmax(80px, 2fr)" },
        cell: (run) => <span title={run.error?.message}>{plain(run.error?.message ?? "")}</span>,
      },
    ],
    [t, words, ofTask],
  );
  const onSeen = useCallback((keys: string[], from: number) => onShown(from, from + keys.length), [onShown]);
  return (
    <Grid
      label={t("screen.runs")}
      rows={rows}
      keyOf={({ run }) => String(run)}
      columns={columns}
      more={more}
      onMore={onMore}
      onSeen={onSeen}
      {...(selection ? { selection } : {})}
      card={(run) => (
        <div className={css.card}>
          <div className={css.cardTop}>
            <RunMark run={run} />
            <RunLink run={run.run} />
          </div>
          <div className="cut">{ofTask ? (run.error?.message ?? run.node) : <TaskLink task={run.task} />}</div>
          <div className="soft">
            <Away at={run.ended ?? run.due} />
            {run.tookMs !== null && ` · ${words.span(run.tookMs)}`}
          </div>
        </div>
      )}
    />
  );
}

export function RunMark({ run }: { run: Run }) {
  const now = useNow();
  return <StateMark state={shownState(run, now)} />;
}

/** Above this a start counts as late: it stands out. */
const lateFromMs = 1_000;

export function Lateness({ ms }: { ms: number | null }) {
  const { span } = useWords();
  if (ms === null) return null;
  return (
    <span
      className="figures"
      style={ms >= lateFromMs ? { color: "var(--c-late)", fontWeight: 600 } : { color: "var(--c-soft)" }}
    >
      {span(Math.max(0, ms))}
    </span>
  );
}
