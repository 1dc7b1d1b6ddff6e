import { SegmentedControl } from "@mantine/core";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useState } from "react";
import { useMay } from "../../api/may.ts";
import type { Filter } from "../../filter.ts";
import { useWords } from "../../messages/words.ts";
import { CopyCurl } from "../../parts/form/copy-curl.tsx";
import { Filters, GroupField, OwnerField } from "../../parts/form/filters.tsx";
import { NewButton } from "../../parts/form/new-button.tsx";
import { Views } from "../../parts/form/views.tsx";
import { Page } from "../../parts/layout/page.tsx";
import { Nothing, Shown, Waiting } from "../../parts/state/notice.tsx";
import { useChoice } from "../../parts/table/choice.tsx";
import { usePages } from "../../parts/table/pages.ts";
import { globOf, NameField } from "../name-field.tsx";
import { BulkBar } from "./bulk-bar.tsx";
import { TaskGrid } from "./task-grid.tsx";

const Create = lazy(() => import("../create/create.tsx").then(({ Create }) => ({ default: Create })));

const pageSize = 200;
/** The refetch interval: some figures change without an event. */
const everyMs = 15_000;

export function Tasks() {
  const { t } = useWords();
  const search = useSearch({ from: "/tasks" });
  const navigate = useNavigate({ from: "/tasks" });
  const may = useMay("operator");
  const mayCreate = useMay("editor");
  const [creates, setCreates] = useState(false);
  const filter = useCallback(
    (change: Filter) => void navigate({ search: (before: Filter) => ({ ...before, ...change }), replace: true }),
    [navigate],
  );
  const glob = search.matching ? globOf(search.matching) : undefined;
  const matching = search.of ? `${search.of}:${glob ?? "*"}` : glob;
  const named = { ...(matching ? { matching } : {}), ...(search.group ? { group: search.group } : {}) };
  const given = {
    limit: pageSize,
    ...named,
    ...(search.of ? { of: search.of } : {}),
    // Named schedules are listed only if there is a name filter or the list is that of one task's schedules.
    ...(matching ? {} : { schedules: false }),
    ...(search.owner ? { owner: search.owner } : {}),
    ...(search.paused === "yes" ? { paused: true } : search.paused === "no" ? { paused: false } : {}),
  };
  const tasks = usePages("listTasks", given, { everyMs });
  const { chosen, choose, chooseNone } = useChoice(search);
  const isFiltered = Object.keys(search).length > 0;
  const matched = { ...named, ...(matching || search.group ? {} : { all: true }) };
  return (
    <Page
      title={search.of ? t("tasks.schedulesOf", { task: search.of }) : t("screen.tasks")}
      {...(search.of
        ? {
            above: (
              <Link to="/tasks/$task" params={{ task: search.of }}>
                {search.of}
              </Link>
            ),
          }
        : { below: t("tasks.lead") })}
      acts={
        <>
          <CopyCurl id="listTasks" given={given} />
          <Views list="tasks" present={search} onTake={(view) => void navigate({ search: view })} />
          {mayCreate && !search.of && <NewButton onClick={() => setCreates(true)}>{t("create.open")}</NewButton>}
        </>
      }
      fill
    >
      <Filters onClear={isFiltered ? () => void navigate({ search: {}, replace: true }) : undefined}>
        <NameField
          label={t("tasks.name")}
          hint={t("tasks.nameHint")}
          value={search.matching ?? ""}
          onChange={(matching) => filter({ matching })}
        />
        <GroupField value={search.group} onChange={(group) => filter({ group })} />
        <OwnerField value={search.owner} onChange={(owner) => filter({ owner })} />
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
      {may && (
        <BulkBar
          isThere={(tasks.data?.length ?? 0) > 0}
          chosen={chosen}
          search={search}
          filter={matched}
          onNone={chooseNone}
        />
      )}
      <Shown of={tasks} rows={12}>
        {(rows) =>
          rows.length > 0 ? (
            <TaskGrid
              rows={rows}
              list={tasks.list}
              more={tasks.more}
              onMore={tasks.onMore}
              onShown={tasks.onShown}
              {...(may ? { selection: { chosen, choose } } : {})}
            />
          ) : search.of && Object.keys(search).length === 1 ? (
            <Nothing title={t("tasks.noSchedules")}>
              <p>{t("tasks.schedulesTold", { task: search.of })}</p>
              <code>{`carillon tasks schedule ${search.of} NAME "0 9 * * *" --payload JSON`}</code>
            </Nothing>
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
      {creates && (
        <Suspense fallback={<Waiting rows={1} />}>
          <Create onClose={() => setCreates(false)} />
        </Suspense>
      )}
    </Page>
  );
}
