import { useAnswer } from "../../api/answers.ts";
import { useWords } from "../../messages/words.ts";
import { Dialog } from "../../parts/layout/dialog.tsx";
import { Shown } from "../../parts/state/notice.tsx";
import { RunNow } from "./run-now.tsx";

/** The dialog that runs a task, for places that know only the task's name. */
export function RunNamed({ task: name, onClose }: { task: string; onClose: () => void }) {
  const { t } = useWords();
  const task = useAnswer("getTask", { task: name });
  if (task.data) return <RunNow task={task.data} onClose={onClose} />;
  return (
    <Dialog title={t("runNow.title", { task: name })} onClose={onClose}>
      <Shown of={task} rows={3}>
        {() => null}
      </Shown>
    </Dialog>
  );
}
