import { Select } from "@mantine/core";
import { useAnswer } from "../../api/answers.ts";
import { useWords } from "../../messages/words.ts";
import { useNow } from "../../now.ts";
import { isState } from "../../runs/states.ts";
import type { Task } from "../answers.ts";
import type { Payload, Source } from "./payload.ts";

const runsShown = 8;

/** A select that replaces the form's payload by the payload of a schedule or of an earlier run. */
export function PayloadSources({ task, payload }: { task: Task; payload: Payload }) {
  const { t, away } = useWords();
  const now = useNow();
  const { source, take } = payload;
  const schedules = useAnswer("listTasks", { of: task.name, limit: 100 }, { enabled: task.schedules > 0 });
  const runs = useAnswer("listRuns", { task: task.name, limit: runsShown });
  const listed = (runs.data?.items ?? []).map(({ run, state, source: from, ended, due }) => ({
    value: `run:${run}`,
    label: [
      t("payload.ofRun", { run: String(run) }),
      t(`source.${from}`),
      isState(state) ? t(`state.${state}`) : state,
      away(Date.parse(ended ?? due), now),
    ].join(" · "),
  }));
  // The run that is being repeated may be older than the listed runs; it is added to the list.
  const other = source.startsWith("run:") && !listed.some(({ value }) => value === source);
  const others = other ? [{ value: source, label: t("payload.ofRun", { run: source.slice(4) }) }] : [];
  const named = (schedules.data?.items ?? []).map(({ name }) => ({ value: `task:${name}`, label: name }));
  const manual = (task.schedule as { type: string }).type === "manual";
  if (named.length + listed.length + others.length === 0) return null;
  return (
    <Select
      label={t("payload.from")}
      allowDeselect={false}
      maxDropdownHeight={260}
      disabled={!payload.isReady}
      data={[
        { value: "own", label: t(manual ? "payload.ofNone" : "payload.ofSchedule") },
        ...(named.length === 0 ? [] : [{ group: t("payload.schedules"), items: named }]),
        ...(listed.length + others.length === 0 ? [] : [{ group: t("payload.runs"), items: [...others, ...listed] }]),
      ]}
      value={source}
      onChange={(chosen) => chosen && take(chosen as Source)}
    />
  );
}
