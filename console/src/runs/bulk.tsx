/** Cancels many runs or runs them again: those that were chosen, or, as an operation, all that match the filter. */
import { Button } from "@mantine/core";
import { IconBan, IconRefresh } from "@tabler/icons-react";
import { useRef, useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { call, type Given, isRefusal } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Shown } from "../parts/notice.tsx";
import type { RunState } from "../parts/state.tsx";
import { toast } from "../parts/toasts.tsx";
import type { Filter } from "../router.tsx";
import { Names, Watched } from "../tasks/bulk.tsx";
import { Gauge } from "../tasks/tasks.tsx";
import css from "./runs.module.css";
import type { Run } from "./runs.tsx";

type Kind = "cancel" | "rerun";
type OperationFilter = Given<"previewOperation">["filter"];

const ended: RunState[] = ["succeeded", "failed", "cancelled", "skipped"];
const isOf = (kind: Kind, state: RunState) => ended.includes(state) === (kind === "rerun");
const namesShown = 8;

/** What the list's filter means for an operation; undefined: nothing that it shows can be acted on so. */
function matched(kind: Kind, search: Filter, states: RunState[]): OperationFilter | undefined {
  const given = states.filter((state) => isOf(kind, state));
  if (states.length > 0 && given.length === 0) return undefined;
  const filter = {
    ...(search.task ? { task: search.task } : {}),
    ...(given.length > 0 ? { states: given } : {}),
    ...(search.since ? { since: search.since } : {}),
    ...(search.until ? { until: search.until } : {}),
  };
  return Object.keys(filter).length === 0 ? { all: true } : filter;
}

export function RunBulk({
  rows,
  chosen,
  search,
  states,
  onNone,
}: {
  rows: Run[];
  chosen: ReadonlySet<string>;
  search: Filter;
  states: RunState[];
  onNone: () => void;
}) {
  const { t } = useWords();
  const [asked, setAsked] = useState<{ kind: Kind; runs?: Run[]; filter?: OperationFilter }>();
  const runs = rows.filter(({ run }) => chosen.has(String(run)));
  const all = { cancel: matched("cancel", search, states), rerun: matched("rerun", search, states) };
  const done = () => {
    setAsked(undefined);
    onNone();
  };
  return (
    <div className={css.bulk} data-some={runs.length > 0 || undefined}>
      <span className="figures" role="status">
        {runs.length > 0 ? t("runs.chosen", { n: runs.length }) : t("runs.chooseTold")}
      </span>
      {runs.length > 0 && (
        <>
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<IconBan size={14} aria-hidden />}
            disabled={!runs.some(({ state }) => isOf("cancel", state))}
            onClick={() => setAsked({ kind: "cancel", runs: runs.filter(({ state }) => isOf("cancel", state)) })}
          >
            {t("runs.cancelSome")}
          </Button>
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<IconRefresh size={14} aria-hidden />}
            disabled={!runs.some(({ state }) => isOf("rerun", state))}
            onClick={() => setAsked({ kind: "rerun", runs: runs.filter(({ state }) => isOf("rerun", state)) })}
          >
            {t("run.rerun")}
          </Button>
          <Button size="compact-sm" variant="subtle" c="var(--c-text)" onClick={onNone}>
            {t("tasks.chooseNone")}
          </Button>
        </>
      )}
      <span className={css.matched}>
        <span className="soft">{Object.keys(search).length > 0 ? t("runs.matched") : t("runs.everything")}</span>
        {(["cancel", "rerun"] as const).map((kind) => (
          <Button
            key={kind}
            size="compact-sm"
            variant="default"
            disabled={all[kind] === undefined}
            onClick={() => setAsked({ kind, ...(all[kind] ? { filter: all[kind] } : {}) })}
          >
            {t(`runs.${kind}All`)}
          </Button>
        ))}
      </span>
      {asked?.runs && (
        <Chosen kind={asked.kind} runs={asked.runs} onClose={() => setAsked(undefined)} onDone={onNone} />
      )}
      {asked?.filter && (
        <Matched kind={asked.kind} filter={asked.filter} onClose={() => setAsked(undefined)} onDone={done} />
      )}
    </div>
  );
}

/** One by one, each with a key of its own: what is repeated is done once. What moved on meanwhile is counted, and left alone. */
function Chosen({ kind, runs, onClose, onDone }: { kind: Kind; runs: Run[]; onClose: () => void; onDone: () => void }) {
  const { t } = useWords();
  const [at, setAt] = useState(0);
  return (
    <Confirm
      title={t(`runBulk.${kind}Title`, { n: runs.length })}
      consequence={t(`runBulk.${kind}Told`)}
      act={kind === "cancel" ? t("run.cancel") : t("run.rerun")}
      grave={kind === "cancel"}
      onDo={async ({ reason, key }) => {
        let passed = 0;
        for (const [index, { run }] of runs.entries()) {
          try {
            await call(kind === "cancel" ? "cancelRun" : "rerunRun", { run, reason }, { key: `${key}-${index}` });
          } catch (error) {
            if (!isRefusal(error, "RUN_STATE") && !isRefusal(error, "RUN_UNKNOWN")) throw error;
            passed++;
          }
          setAt(index + 1);
        }
        outdate("listRuns", "getRun", "listRecentRuns");
        const text = t(`runBulk.${kind}Done`, { n: runs.length - passed });
        toast({ text: passed === 0 ? text : `${text} · ${t("runBulk.passed", { n: passed })}` });
        onDone();
      }}
      onClose={onClose}
    >
      <Names names={runs.slice(0, namesShown).map(({ run, task }) => `${run} ${task}`)} total={runs.length} />
      {at > 0 && <Gauge done={at} total={runs.length} label={t("bulk.progress")} />}
    </Confirm>
  );
}

function Matched({
  kind,
  filter,
  onClose,
  onDone,
}: {
  kind: Kind;
  filter: OperationFilter;
  onClose: () => void;
  onDone: () => void;
}) {
  const { t } = useWords();
  const [operation, setOperation] = useState<number>();
  const isBegun = useRef(false);
  const preview = useAnswer("previewOperation", { kind, filter });
  const total = preview.data?.total ?? 0;
  if (operation !== undefined) return <Watched operation={operation} onClose={onDone} />;
  return (
    <Confirm
      title={preview.data ? t(`runBulk.${kind}Title`, { n: total }) : t("bulk.counting")}
      consequence={t(`runBulk.${kind}Told`)}
      act={kind === "cancel" ? t("run.cancel") : t("run.rerun")}
      grave={kind === "cancel"}
      blocked={total === 0}
      onDo={async ({ reason, key }) => {
        const begun = await call("beginOperation", { kind, filter, reason }, { key });
        isBegun.current = true;
        setOperation(begun.operation);
      }}
      // The operation is shown where the question was.
      onClose={() => {
        if (!isBegun.current) onClose();
      }}
    >
      <Shown of={preview} rows={3}>
        {(data) =>
          data.total === 0 ? (
            <p>{t(`runBulk.${kind}None`)}</p>
          ) : (
            <Names names={data.first.slice(0, namesShown)} total={data.total} />
          )
        }
      </Shown>
    </Confirm>
  );
}
