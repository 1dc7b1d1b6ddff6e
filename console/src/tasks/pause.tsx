/** Pauses a task: until it is resumed, or until a time. */
import { useState } from "react";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { TimeField } from "../parts/form/time-field.tsx";
import { toast } from "../parts/state/toasts.tsx";
import css from "./task.module.css";
import { outdateTask } from "./undo.ts";

export function Pause({ task, onUndo, onClose }: { task: string; onUndo: () => void; onClose: () => void }) {
  const { t } = useWords();
  const [until, setUntil] = useState<string>();
  return (
    <Confirm
      title={t("task.pauseTitle", { task })}
      consequence={t("task.pauseTold")}
      act={t("task.pause")}
      onDo={async ({ reason, key }) => {
        const { running } = await call("pauseTask", { task, reason, until }, { key });
        outdateTask();
        toast({
          text: t(running.length > 0 ? "task.pausedRunning" : "task.pausedDone", { task, n: running.length }),
          undo: onUndo,
        });
      }}
      onClose={onClose}
    >
      <div className={css.form} style={{ marginTop: 14 }}>
        <TimeField label={t("task.pauseUntil")} value={until} onChange={setUntil} />
      </div>
    </Confirm>
  );
}
