/** Cancels or reruns many runs: the selected runs, or, as one operation, all runs that match the filter. */
import { Button } from "@mantine/core";
import { IconBan, IconRefresh } from "@tabler/icons-react";
import { useRef, useState } from "react";
import { outdate } from "../api/answers.ts";
import { call, type Given, isRefusal } from "../api/call.ts";
import type { Filter } from "../filter.ts";
import { useWords } from "../messages/words.ts";
import { nowMs } from "../now.ts";
import { BeginMatching, Names } from "../operations/begin.tsx";
import { FilterText } from "../operations/filter-text.tsx";
import { Confirm } from "../parts/form/confirm.tsx";
import { useEach } from "../parts/form/each.ts";
import type { Bounds } from "../parts/form/range.ts";
import { Gauge } from "../parts/state/gauge.tsx";
import type { RunState } from "../parts/state/mark.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { ChoiceBar } from "../parts/table/choice.tsx";
import { namedOf } from "../tasks/name-field.tsx";
import type { ListedRun } from "./answers.ts";
import { CompareChosen } from "./compare/compare-button.tsx";
import { isLabels, labelsOf } from "./labels.ts";
import { type Other, OtherPayload } from "./other-payload.tsx";
import { anew } from "./rerun.tsx";

type Kind = "cancel" | "rerun";
type OperationFilter = Given<"previewOperation">["filter"];

const live: RunState[] = ["ready", "claimed", "held", "paused", "undecided"];
const ended: RunState[] = ["succeeded", "failed", "cancelled", "skipped"];
const isOf = (kind: Kind, state: RunState) => ended.includes(state) === (kind === "rerun");

/**
 * Converts the list's filter into the filter of an operation that matches the same runs. If no state is selected, the list omits
 * runs that are not due yet, so a cancel operation omits these runs too.
 * @returns undefined if none of the selected states allows the act, or the labels cannot be read
 */
function matched(kind: Kind, search: Filter, bounds: Bounds, states: RunState[]): OperationFilter | undefined {
  const given = states.filter((state) => isOf(kind, state));
  if ((states.length > 0 && given.length === 0) || !isLabels(search.label ?? "")) return undefined;
  const now = nowMs();
  const labels = labelsOf(search.label);
  const until =
    kind === "cancel" && states.length === 0 && !(bounds.until && Date.parse(bounds.until) < now)
      ? new Date(now).toISOString()
      : bounds.until;
  return {
    ...namedOf(search),
    ...(Object.keys(labels).length > 0 ? { labels } : {}),
    states: states.length > 0 ? given : kind === "rerun" ? ended : live,
    ...(bounds.since ? { since: bounds.since } : {}),
    ...(until ? { until } : {}),
  };
}

/** The bar of bulk acts. Its dialogs stay open even if an act removes all rows from the list. */
export function RunBulk({
  rows,
  chosen,
  search,
  bounds,
  states,
  onNone,
}: {
  rows: ListedRun[];
  chosen: ReadonlySet<string>;
  search: Filter;
  /** The bounds of the time that the list shows. */
  bounds: Bounds;
  states: RunState[];
  onNone: () => void;
}) {
  const { t } = useWords();
  const [asked, setAsked] = useState<{ kind: Kind; runs?: ListedRun[]; filter?: OperationFilter; isDue?: boolean }>();
  const runs = rows.filter(({ run }) => chosen.has(String(run)));
  const done = () => {
    setAsked(undefined);
    onNone();
  };
  return (
    <>
      {rows.length > 0 && (
        <ChoiceBar
          isSome={runs.length > 0}
          told={runs.length > 0 ? t("runs.chosen", { n: runs.length }) : t("runs.chooseTold")}
          onNone={onNone}
          acts={[
            ...(["cancel", "rerun"] as const).map((kind) => {
              const its = runs.filter(({ state }) => isOf(kind, state));
              const Icon = kind === "cancel" ? IconBan : IconRefresh;
              return (
                <Button
                  key={kind}
                  size="compact-sm"
                  variant="default"
                  leftSection={<Icon size={14} aria-hidden />}
                  disabled={its.length === 0}
                  onClick={() => setAsked({ kind, runs: its })}
                >
                  {kind === "cancel" ? t("runs.cancelSome") : t("run.rerun")}
                </Button>
              );
            }),
            <CompareChosen key="compare" runs={runs} />,
          ]}
          all={
            <>
              <span className="soft">{Object.keys(search).length > 0 ? t("runs.matched") : t("runs.everything")}</span>
              {(["cancel", "rerun"] as const).map((kind) => (
                <Button
                  key={kind}
                  size="compact-sm"
                  variant="default"
                  disabled={matched(kind, search, bounds, states) === undefined}
                  onClick={() => {
                    const filter = matched(kind, search, bounds, states);
                    if (filter) setAsked({ kind, filter, isDue: states.length === 0 });
                  }}
                >
                  {t(`runs.${kind}All`)}
                </Button>
              ))}
            </>
          }
        />
      )}
      {asked?.runs && (
        <Chosen kind={asked.kind} runs={asked.runs} onClose={() => setAsked(undefined)} onDone={onNone} />
      )}
      {asked?.filter && (
        <BeginMatching
          kind={asked.kind}
          filter={asked.filter}
          titleOf={(n) => t(`runBulk.${asked.kind}Title`, { n })}
          consequence={
            <>
              {t(`runBulk.${asked.kind}Told`)} <FilterText filter={asked.filter} />
              {asked.kind === "cancel" && asked.isDue && <p>{t("runBulk.dueOnly")}</p>}
            </>
          }
          act={asked.kind === "cancel" ? t("run.cancel") : t("run.rerun")}
          grave={asked.kind === "cancel"}
          none={t(`runBulk.${asked.kind}None`)}
          onClose={() => setAsked(undefined)}
          onDone={done}
        />
      )}
    </>
  );
}

/** Acts on the selected runs. Runs whose state has changed meanwhile, or that no longer exist, are counted and left out. */
function Chosen({
  kind,
  runs,
  onClose,
  onDone,
}: {
  kind: Kind;
  runs: ListedRun[];
  onClose: () => void;
  onDone: () => void;
}) {
  const { t } = useWords();
  const { done, each } = useEach(runs);
  const passed = useRef(0);
  const [other, setOther] = useState<Other>();
  const [first, ...rest] = new Set(runs.map(({ task }) => task));
  const mayDiffer = kind === "rerun" && first !== undefined && rest.length === 0;
  return (
    <Confirm
      title={t(`runBulk.${kind}Title`, { n: runs.length })}
      consequence={t(`runBulk.${kind}Told`)}
      act={kind === "cancel" ? t("run.cancel") : t("run.rerun")}
      grave={kind === "cancel"}
      blocked={other === "unreadable"}
      onDo={async (doing) => {
        const { reason } = doing;
        if (typeof other === "object") await other.check(other.value);
        const act = async (one: ListedRun, key: string) => {
          try {
            if (typeof other === "object") await anew(one, other.value, { reason, key });
            else await call(kind === "cancel" ? "cancelRun" : "rerunRun", { run: one.run, reason }, { key });
          } catch (error) {
            if (!isRefusal(error, "RUN_STATE") && !isRefusal(error, "RUN_UNKNOWN")) throw error;
            passed.current++;
          }
        };
        try {
          if (!(await each(doing, act))) return;
        } finally {
          outdate("listRuns", "getRun", "listRecentRuns");
        }
        const n = passed.current;
        const text = t(`runBulk.${kind}Done`, { n: runs.length - n });
        toast({ text: n === 0 ? text : `${text} · ${t("runBulk.passed", { n })}` });
        if (!doing.signal.aborted) onDone();
      }}
      onClose={onClose}
    >
      {mayDiffer && <OtherPayload task={first} onChange={setOther} />}
      <Names names={runs.map(({ run, task }) => `${run} ${task}`)} total={runs.length} />
      {done > 0 && <Gauge done={done} total={runs.length} label={t("bulk.progress")} />}
    </Confirm>
  );
}
