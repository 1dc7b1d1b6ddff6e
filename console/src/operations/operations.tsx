import { useMemo } from "react";
import type { Answer } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Page } from "../parts/layout/page.tsx";
import { Tag, type Tone } from "../parts/state/mark.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { type Column, Grid } from "../parts/table/grid.tsx";
import { usePages } from "../parts/table/pages.ts";
import { Away } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import { FilterText, OperationLink } from "./filter-text.tsx";
import css from "./operations.module.css";

export type Operation = Answer<"listOperations">["items"][number];

const pageSize = 100;
/** The refetch interval: events report that an operation was begun or was told to stop, but neither its steps nor its completion. */
const everyMs = 3_000;

export const operationTone: Record<Operation["state"], Tone> = {
  running: "run",
  stopping: "late",
  done: "ok",
  stopped: "wait",
  failed: "bad",
};

export function Operations() {
  const { t } = useWords();
  const operations = usePages("listOperations", { limit: pageSize }, { everyMs });
  return (
    <Page title={t("screen.operations")} below={t("operations.lead")} fill>
      <Shown of={operations} rows={8}>
        {(rows) =>
          rows.length === 0 ? (
            <Nothing title={t("operations.none")}>
              <p>{t("operations.noneTold")}</p>
              <code>carillon backfill TASK --from 2026-01-01 --to 2026-01-31</code>
            </Nothing>
          ) : (
            <List rows={rows} list={operations.list} more={operations.more} onMore={operations.onMore} />
          )
        }
      </Shown>
    </Page>
  );
}

function List({ rows, list, more, onMore }: { rows: Operation[]; list: string; more: boolean; onMore: () => void }) {
  const { t } = useWords();
  const columns = useMemo<Column<Operation>[]>(
    () => [
      {
        id: "what",
        title: t("operations.what"),
        width: "minmax(150px, 1fr)",
        cell: (one) => (
          <OperationLink operation={one.operation}>
            {t(`operation.word.${one.kind}`)} <span className="soft figures">#{one.operation}</span>
          </OperationLink>
        ),
      },
      {
        id: "on",
        title: t("operations.on"),
        width: "minmax(180px, 2fr)",
        cell: (one) => <FilterText filter={one.filter} />,
      },
      {
        id: "state",
        title: t("operations.state"),
        width: "110px",
        sortBy: ({ state }) => t(`operation.${state}`),
        cell: (one) => <Tag tone={operationTone[one.state]}>{t(`operation.${one.state}`)}</Tag>,
      },
      {
        id: "progress",
        title: t("operations.progress"),
        width: "minmax(150px, 1.2fr)",
        cell: (one) => <Course of={one} />,
      },
      {
        id: "by",
        title: t("operations.by"),
        width: "minmax(80px, 0.8fr)",
        rank: 2,
        sortBy: ({ author }) => author,
        cell: ({ author }) => plain(author),
      },
      {
        id: "why",
        title: t("operations.why"),
        width: "minmax(100px, 1.4fr)",
        rank: 3,
        cell: ({ reason }) => (
          <span className={reason === "" ? "soft" : ""} title={reason}>
            {reason === "" ? "–" : plain(reason)}
          </span>
        ),
      },
      {
        id: "begun",
        title: t("operations.begun"),
        width: "120px",
        rank: 1,
        sortBy: ({ created }) => Date.parse(created),
        cell: ({ created }) => <Away at={created} past />,
      },
    ],
    [t],
  );
  return (
    <Grid
      name="operations"
      list={list}
      label={t("screen.operations")}
      rows={rows}
      keyOf={({ operation }) => String(operation)}
      columns={columns}
      more={more}
      onMore={onMore}
      cardHeight={118}
      card={(one) => (
        <div className={css.listed}>
          <div className={css.top}>
            <OperationLink operation={one.operation}>
              {t(`operation.word.${one.kind}`)} <span className="soft figures">#{one.operation}</span>
            </OperationLink>
            <Tag tone={operationTone[one.state]}>{t(`operation.${one.state}`)}</Tag>
          </div>
          <div className="cut">
            <FilterText filter={one.filter} />
          </div>
          <Course of={one} />
          <div className="soft cut">
            {plain(one.author)} · <Away at={one.created} past />
            {one.reason !== "" && ` · ${plain(one.reason)}`}
          </div>
        </div>
      )}
    />
  );
}

/**
 * Returns the number of items that need no further work: `done` were carried out, `passed` did not need the act any more, `late`
 * ended otherwise after their workers were told to stop them. Failed items are not included.
 */
export const settledOf = ({ done, passed, late }: Operation): number => done + passed + late;

/** Done and failed items as parts of one bar, so that failures stand out. */
export function Course({ of }: { of: Operation }) {
  const { t, count } = useWords();
  const { total, failed } = of;
  const settled = settledOf(of);
  const share = (part: number) => `${total === 0 ? 0 : (100 * part) / total}%`;
  return (
    <span className={css.course}>
      <span className={css.bar} aria-hidden>
        <span className={css.done} style={{ width: share(settled) }} />
        <span className={css.bad} style={{ width: share(failed) }} />
      </span>
      <span className="figures">
        {count(settled)} / {count(total)}
        {failed > 0 && <span className={css.failed}> · {t("bulk.failed", { n: failed })}</span>}
      </span>
    </span>
  );
}
