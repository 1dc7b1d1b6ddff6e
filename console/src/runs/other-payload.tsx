/** A form in which the user enters one payload for all runs of a rerun, instead of each run's own payload. */
import { Switch } from "@mantine/core";
import { useEffect, useState } from "react";
import { useAnswer } from "../api/answers.ts";
import { useWords } from "../messages/words.ts";
import type { Task } from "../tasks/answers.ts";
import { usePayload } from "../tasks/run/payload.ts";
import { PayloadField } from "../tasks/run/payload-field.tsx";
import css from "../tasks/task.module.css";

/**
 * The payload that replaces each run's own payload. `undefined`: each run keeps its own; "unreadable": the user has chosen to
 * replace it, but the entered payload is invalid or still being loaded.
 */
export type Other = { value: unknown; check: (value: unknown) => Promise<void> } | "unreadable" | undefined;

/** @param task the name of the task to which all the runs belong */
export function OtherPayload({ task, onChange }: { task: string; onChange: (other: Other) => void }) {
  const { t } = useWords();
  const [isOn, setOn] = useState(false);
  const asked = useAnswer("getTask", { task }, { enabled: isOn });
  return (
    <div className={css.form} style={{ margin: "14px 0" }}>
      <Switch
        label={t("runBulk.other")}
        checked={isOn}
        onChange={({ currentTarget: { checked } }) => {
          setOn(checked);
          onChange(checked ? "unreadable" : undefined);
        }}
      />
      {isOn && asked.data && <Field task={asked.data} onChange={onChange} />}
    </div>
  );
}

function Field({ task, onChange }: { task: Task; onChange: (other: Other) => void }) {
  const payload = usePayload(task);
  const { json, isReady, check } = payload;
  const said = JSON.stringify(isReady ? (json ?? "unreadable") : "unreadable");
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a changed payload is reported.
  useEffect(() => onChange(isReady && json ? { value: json.value, check } : "unreadable"), [said]);
  return <PayloadField task={task} payload={payload} />;
}
