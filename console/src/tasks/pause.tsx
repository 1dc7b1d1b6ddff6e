/** Pauses a task: until it is resumed, or until a time. */
import { useState } from "react";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { outdateTask } from "./undo.ts";
import { UntilField } from "./until-field.tsx";

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
      <UntilField value={until} onChange={setUntil} />
    </Confirm>
  );
}
