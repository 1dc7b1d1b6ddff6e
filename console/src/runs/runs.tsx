import { MultiSelect } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useMay } from "../api/may.ts";
import type { Filter } from "../filter.ts";
import { useWords } from "../messages/words.ts";
import { CopyCurl } from "../parts/form/copy-curl.tsx";
import { Filters } from "../parts/form/filters.tsx";
import { RangeField, useBounds } from "../parts/form/range-field.tsx";
import { Views } from "../parts/form/views.tsx";
import { Page } from "../parts/layout/page.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { useChoice } from "../parts/table/choice.tsx";
import { usePages } from "../parts/table/pages.ts";
import { namedOf, TaskNameField } from "../tasks/name-field.tsx";
import { RunBulk } from "./bulk.tsx";
import { CompareBar } from "./compare/compare-button.tsx";
import { LabelField } from "./label-field.tsx";
import { labelTexts } from "./labels.ts";
import { RunGrid } from "./run-grid.tsx";
import css from "./runs.module.css";
import { isState, states } from "./states.ts";

const pageSize = 100;
/** The refetch interval: no event reports starts and claims. */
const everyMs = 4_000;

export function Runs() {
  const { t } = useWords();
  const search = useSearch({ from: "/runs" });
  const navigate = useNavigate({ from: "/runs" });
  const picked = useMemo(() => (search.state ?? "").split(",").filter(isState), [search.state]);
  const labels = useMemo(() => labelTexts(search.label), [search.label]);
  const bounds = useBounds(search);
  const filter = (change: Filter) =>
    void navigate({ search: (before: Filter) => ({ ...before, ...change }), replace: true });
  const given = {
    limit: pageSize,
    ...namedOf(search),
    ...(picked.length > 0 ? { state: picked } : {}),
    ...(labels.length > 0 ? { label: labels } : {}),
    ...bounds,
  };
  const runs = usePages("listRuns", given, { everyMs });
  const isFiltered = Object.keys(search).length > 0;
  const may = useMay("operator");
  const { chosen, choose, chooseNone } = useChoice(search);
  return (
    <Page
      title={t("screen.runs")}
      below={t("runs.lead")}
      acts={
        <>
          <CopyCurl id="listRuns" given={given} />
          <Views list="runs" present={search} onTake={(view) => void navigate({ search: view })} />
        </>
      }
      fill
    >
      <Filters onClear={isFiltered ? () => void navigate({ search: {}, replace: true }) : undefined}>
        <TaskNameField task={search.task} matching={search.matching} onChange={(named) => filter({ ...named })} />
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
        <LabelField value={search.label ?? ""} onChange={(label) => filter({ label })} />
        <RangeField search={search} onChange={filter} />
      </Filters>
      {may ? (
        <RunBulk
          rows={runs.data ?? []}
          chosen={chosen}
          search={search}
          bounds={bounds}
          states={picked}
          onNone={chooseNone}
        />
      ) : (
        <CompareBar rows={runs.data ?? []} chosen={chosen} onNone={chooseNone} />
      )}
      <Shown of={runs} rows={12}>
        {(rows) =>
          rows.length > 0 ? (
            <RunGrid
              rows={rows}
              list={runs.list}
              more={runs.more}
              onMore={runs.onMore}
              onShown={runs.onShown}
              selection={{ chosen, choose }}
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
