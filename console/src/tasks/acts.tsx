import { Button, Menu } from "@mantine/core";
import {
  IconArrowBackUp,
  IconCopy,
  IconDots,
  IconEdit,
  IconHistory,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlayerPlayFilled,
  IconTrash,
} from "@tabler/icons-react";
import { useState } from "react";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { type Act, ActDialog } from "./act-dialog.tsx";
import type { Task } from "./answers.ts";
import { useUndo } from "./undo.ts";

/** True if the slots follow from the schedule alone, which a backfill requires; false for manual tasks and delays between runs. */
const hasSlots = ({ type, mode }: { type: string; mode?: string }) =>
  type !== "manual" && !(type === "every" && mode === "delay");

/** The buttons and the menu with the acts on a task. */
export function Acts({ task }: { task: Task }) {
  const { t } = useWords();
  const mayRun = useReach("operator").on(task.name);
  const mayEdit = useReach("editor").on(task.name);
  /** The open dialog, with the task as of its opening: the form is filled from it, and the change is based on its version. */
  const [open, setOpen] = useState<{ act: Act; read: Task }>();
  const setAct = (next: Act) => setOpen({ act: next, read: task });
  const { resume } = useUndo(task);
  if (!mayRun) return null;
  return (
    <>
      <Button leftSection={<IconPlayerPlayFilled size={15} aria-hidden />} onClick={() => setAct("run")}>
        {t("task.runNow")}
      </Button>
      {task.paused ? (
        <Button variant="default" leftSection={<IconPlayerPlay size={16} aria-hidden />} onClick={() => resume()}>
          {t("task.resume")}
        </Button>
      ) : (
        <Button
          variant="default"
          leftSection={<IconPlayerPause size={16} aria-hidden />}
          onClick={() => setAct("pause")}
        >
          {t("task.pause")}
        </Button>
      )}
      {mayEdit && (
        <Button variant="default" leftSection={<IconEdit size={16} aria-hidden />} onClick={() => setAct("edit")}>
          {t("task.edit")}
        </Button>
      )}
      <Menu position="bottom-end" width={250}>
        <Menu.Target>
          <Button variant="default" px={9} aria-label={t("act.more")}>
            <IconDots size={17} />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            disabled={!hasSlots(task.schedule as { type: string; mode?: string })}
            leftSection={<IconHistory size={15} />}
            onClick={() => setAct("backfill")}
          >
            {t("backfill.open")}
          </Menu.Item>
          {mayEdit && (
            <>
              {task.of === null && (
                <Menu.Item leftSection={<IconCopy size={15} />} onClick={() => setAct("copy")}>
                  {t("create.copy")}
                </Menu.Item>
              )}
              <Menu.Item
                disabled={task.edited.length === 0}
                leftSection={<IconArrowBackUp size={15} />}
                onClick={() => setAct("revert")}
              >
                {t("task.revertEdits")}
              </Menu.Item>
              <Menu.Item c="var(--c-bad)" leftSection={<IconTrash size={15} />} onClick={() => setAct("remove")}>
                {t("task.remove")}
              </Menu.Item>
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      {open && <ActDialog act={open.act} read={open.read} task={task} onClose={() => setOpen(undefined)} />}
    </>
  );
}
