import { useNavigate } from "@tanstack/react-router";
import { outdate } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { toast, toastFailure } from "../parts/state/toasts.tsx";
import { optionsAgain } from "./again.ts";
import type { Task } from "./answers.ts";

export const outdateTask = () =>
  outdate("getTask", "listTasks", "listFlow", "listUpcomingSlots", "listTaskVersions", "listComing");

/** Acts on a task without a dialog. A failure is shown as a toast. @returns true if it succeeded */
async function attempt(act: () => Promise<unknown>, done: string): Promise<boolean> {
  try {
    await act();
    outdateTask();
    toast({ text: done });
    return true;
  } catch (error) {
    toastFailure(error);
    return false;
  }
}

/** Returns a function that resumes a paused task at once. */
export function useResume(): (task: string) => void {
  const { t } = useWords();
  return (task) => void attempt(() => call("resumeTask", { task }), t("task.resumed", { task }));
}

/** Undoes an act on a task. A failure is shown as a toast, because the act's dialog is closed by then. */
export function useUndo(task: Task) {
  const { t } = useWords();
  const navigate = useNavigate();
  const resume = useResume();
  const { name } = task;
  return {
    resume: () => resume(name),
    /** Restores the edits that a revert removed, as a new version. */
    editAgain: (version: number, ifVersion: number) =>
      void attempt(
        () => call("revertTask", { task: name, version }, { ifVersion }),
        t("versions.reverted", { version: String(version) }),
      ),
    createAgain: async () => {
      const create = async () => call("createTask", { task: name, options: await optionsAgain(task) });
      if (await attempt(create, t("task.again", { task: name })))
        void navigate({ to: "/tasks/$task", params: { task: name } });
    },
  };
}
