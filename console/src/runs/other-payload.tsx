/** Another payload for runs that are run again, the same for all of them. */
import { Switch } from "@mantine/core";
import { useEffect, useState } from "react";
import { useAnswer } from "../api/answers.ts";
import { useWords } from "../messages/words.ts";
import type { Task } from "../tasks/answers.ts";
import { usePayload } from "../tasks/run/payload.ts";
import { PayloadField } from "../tasks/run/payload-field.tsx";
import css from "../tasks/task.module.css";

/** The payload to be given in place of each run's own; undefined: each has its own. */
export type Other = { value: unknown; check: (value: unknown) => Promise<void> } | "unreadable" | undefined;

/** @param task the one task that all the runs are of */
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another payload is reported.
  useEffect(() => onChange(isReady && json ? { value: json.value, check } : "unreadable"), [said]);
  return <PayloadField task={task} payload={payload} />;
}
