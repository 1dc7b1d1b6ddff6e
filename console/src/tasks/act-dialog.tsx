import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Waiting } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { mayComeAgain } from "./again.ts";
import type { Task } from "./answers.ts";
import { Backfill } from "./backfill.tsx";
import { Pause } from "./pause.tsx";
import { RunNow } from "./run/run-now.tsx";
import { outdateTask, useUndo } from "./undo.ts";

const Edit = lazy(() => import("./edit/edit.tsx").then(({ Edit }) => ({ default: Edit })));

const Create = lazy(() => import("./create/create.tsx").then(({ Create }) => ({ default: Create })));

export type Act = "run" | "pause" | "edit" | "copy" | "backfill" | "revert" | "remove";

/**
 * The dialog of the selected act.
 * @param read the task as it was when the dialog was opened
 * @param task the task as it is now
 */
export function ActDialog({ act, read, task, onClose }: { act: Act; read: Task; task: Task; onClose: () => void }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const { resume, editAgain, createAgain } = useUndo(task);
  const { name } = task;
  return (
    <>
      {act === "run" && <RunNow task={read} onClose={onClose} />}
      {act === "edit" && (
        <Suspense fallback={<Waiting rows={1} />}>
          <Edit task={read} present={task.version} onClose={onClose} />
        </Suspense>
      )}
      {act === "copy" && (
        <Suspense fallback={<Waiting rows={1} />}>
          <Create from={read} onClose={onClose} />
        </Suspense>
      )}
      {act === "backfill" && <Backfill task={name} onClose={onClose} />}
      {act === "pause" && <Pause task={name} onUndo={resume} onClose={onClose} />}
      {act === "revert" && (
        <Confirm
          title={t("task.revertEdits")}
          consequence={t("task.revertTold", { parts: read.edited.join(", ") })}
          act={t("task.revert")}
          onDo={async ({ reason, key }) => {
            const { version: from } = read;
            const { version } = await call("revertTask", { task: name, reason }, { key, ifVersion: from });
            outdateTask();
            toast({ text: t("task.reverted", { task: name }), undo: () => editAgain(from, version) });
          }}
          onClose={onClose}
        />
      )}
      {act === "remove" && (
        <Confirm
          title={t("task.removeTitle", { task: name })}
          consequence={[
            ...(task.schedules > 0 ? [t("task.removeSchedules", { n: task.schedules })] : []),
            t("task.removeTold"),
          ].join(" ")}
          act={t("task.remove")}
          grave
          onDo={async ({ reason, key, signal }) => {
            await call("removeTask", { task: name, reason }, { key });
            outdateTask();
            toast({
              text: t("task.removed", { task: name }),
              ...(mayComeAgain(task) ? { undo: () => void createAgain() } : {}),
            });
            if (!signal.aborted) void navigate({ to: "/tasks" });
          }}
          onClose={onClose}
        />
      )}
    </>
  );
}
