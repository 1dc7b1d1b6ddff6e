/** Why runs of groups wait: one request explains the first waiting runs of many groups. */
import { Fragment, type ReactNode } from "react";
import { useAnswers } from "../api/answers.ts";
import { useWords } from "../messages/words.ts";
import { RunLink } from "../parts/value/links.tsx";
import type { ListedRun } from "../runs/answers.ts";
import { ExplainedRuns, explainedMost, useReasons } from "../runs/why/listed.tsx";
import { Reasons } from "../runs/why/why.tsx";
import type { WorkerGroup } from "./answers.ts";
import css from "./workers.module.css";

const everyMs = 3_000;

/** Renders the groups, each with its waiting run that was due first. */
export function GroupsThatWait({
  groups,
  children,
}: {
  groups: WorkerGroup[];
  children: (group: WorkerGroup, first: ListedRun | undefined) => ReactNode;
}) {
  const waiting = groups.filter((group) => group.waiting > 0).map(({ name }) => name);
  const found = useAnswers(
    "listRuns",
    waiting.map((group) => ({ group, state: ["ready"], limit: 1 })),
    { everyMs },
  );
  const firsts = new Map(waiting.map((name, at) => [name, found[at]?.data?.items[0]]));
  const parts = Array.from({ length: Math.ceil(groups.length / explainedMost) }, (_, part) =>
    groups.slice(part * explainedMost, (part + 1) * explainedMost),
  );
  return parts.map((part) => {
    const rows = part.flatMap(({ name }) => firsts.get(name) ?? []);
    return (
      <ExplainedRuns key={part[0]?.name} rows={rows} seen={rows.map(({ run }) => String(run))}>
        {part.map((group) => (
          <Fragment key={group.name}>{children(group, firsts.get(group.name))}</Fragment>
        ))}
      </ExplainedRuns>
    );
  });
}

/** The reason why the group's run that was due first has not started, as the server explains it. */
export function Waits({ first }: { first: ListedRun }) {
  const { t } = useWords();
  const reasons = useReasons(first.run);
  if (reasons.length === 0) return null;
  return (
    <div className={css.waits}>
      {t("fleet.first")} <RunLink run={first.run} />
      <Reasons task={first.task} reasons={reasons} />
    </div>
  );
}
