import { Select } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useAnswer } from "../api/answers.ts";
import { useWords } from "../messages/words.ts";
import { Page } from "../parts/layout/page.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { More } from "../parts/table/more.tsx";
import { usePages } from "../parts/table/pages.ts";
import { Absent } from "./absent.tsx";
import type { Drained, Worker } from "./answers.ts";
import { GroupCard } from "./group-card.tsx";
import { GroupsThatWait } from "./group-waits.tsx";
import { Lost } from "./lost.tsx";
import { WorkerCard } from "./worker-card.tsx";
import css from "./workers.module.css";

const everyMs = 2_000;

/** The fleet: each group with its workers. A worker of several groups is below each of them. */
export function Workers() {
  const { t } = useWords();
  const { group } = useSearch({ from: "/workers" });
  const navigate = useNavigate({ from: "/workers" });
  const workers = usePages("listWorkers", { limit: 100, ...(group ? { group } : {}) }, { everyMs });
  const groups = useAnswer("listGroups", { limit: 200 }, { everyMs });
  // The server refuses this list to users without access to all namespaces. The page then omits who drained a worker, and why.
  const drained = useAnswer("listDrained", { limit: 200 }, { everyMs }).data?.items;
  return (
    <Page title={t("screen.workers")} below={t("workers.lead")}>
      <search aria-label={t("filter.label")}>
        <Select
          w={260}
          maw="100%"
          aria-label={t("tasks.group")}
          placeholder={t("tasks.anyGroup")}
          data={groups.data?.items.map(({ name }) => name) ?? []}
          value={group ?? null}
          onChange={(chosen) => void navigate({ search: chosen ? { group: chosen } : {}, replace: true })}
          clearable
          clearButtonProps={{ "aria-label": t("filter.clear") }}
        />
      </search>
      <Lost />
      <Absent drained={drained} />
      <Shown of={groups} rows={3}>
        {({ items }) => (
          <Shown of={workers} rows={4}>
            {(rows) => {
              const shown = items.filter(({ name }) => group === undefined || name === group);
              const apart = rows.filter((worker) => !shown.some(({ name }) => worker.groups.includes(name)));
              return (
                <>
                  {rows.length === 0 && (
                    <Nothing title={t("workers.none")}>
                      <p>{t("workers.noneTold")}</p>
                      <code>carillon worker tasks.ts</code>
                    </Nothing>
                  )}
                  <GroupsThatWait groups={shown}>
                    {(one, first) => {
                      const own = rows.filter((worker) => worker.groups.includes(one.name));
                      return (
                        <GroupCard group={one} workers={own} isMore={workers.more} first={first}>
                          <List workers={own} drained={drained} />
                        </GroupCard>
                      );
                    }}
                  </GroupsThatWait>
                  <List workers={apart} drained={drained} />
                  <More of={workers} />
                </>
              );
            }}
          </Shown>
        )}
      </Shown>
    </Page>
  );
}

function List({ workers, drained }: { workers: Worker[]; drained: Drained[] | undefined }) {
  if (workers.length === 0) return null;
  return (
    <ul className={css.workers}>
      {workers.map((worker) => (
        <li key={worker.sessionId}>
          <WorkerCard worker={worker} drained={drained?.find(({ node }) => node === worker.node)} />
        </li>
      ))}
    </ul>
  );
}
