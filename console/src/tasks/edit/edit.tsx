/** The form for editing a task. */
import { Button, TextInput } from "@mantine/core";
import { isOwnOption, type OptionName } from "carillon/task";
import { useState } from "react";
import { useWords } from "../../messages/words.ts";
import { Dialog } from "../../parts/layout/dialog.tsx";
import { Trouble } from "../../parts/state/notice.tsx";
import { Meanwhile } from "../../parts/value/versions.tsx";
import type { Task } from "../answers.ts";
import css from "../task.module.css";
import { Changes } from "../versions.tsx";
import { PolicyFields } from "./policy-fields.tsx";
import { Preview } from "./preview.tsx";
import { RuleFields } from "./rule-fields.tsx";
import { ScheduleFields } from "./schedule-fields.tsx";
import { useEdit } from "./use-edit.ts";

/**
 * @param task the task as it was when the form was opened; the edit consists of the differences from it
 * @param present the version that is stored now
 */
export function Edit({ task, present, onClose }: { task: Task; present: number; onClose: () => void }) {
  const { t } = useWords();
  const [reason, setReason] = useState("");
  const { form, set, edit, lastRead, save, wrongAt } = useEdit(task, reason, onClose);
  // A named schedule of another task (`of`) inherits all other options from that task.
  const isSaid = (option: OptionName) => task.of === null || isOwnOption(option);
  return (
    <Dialog onClose={onClose} title={t("edit.title", { task: task.name })} size={720}>
      <form
        className={css.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (!edit.wrong && edit.changes.length > 0) save.mutate();
        }}
      >
        {task.of !== null && <p className="soft">{t("edit.of", { task: task.of })}</p>}
        <ScheduleFields form={form} set={set} lastRead={lastRead} mayHaveNone={task.of === null} />
        <Preview form={form} task={task} is={edit.is} />
        <PolicyFields form={form} set={set} wrongAt={wrongAt} isSaid={isSaid} />
        <RuleFields form={form} set={set} wrongAt={wrongAt} isSaid={isSaid} />
        <div className={css.foot}>
          {edit.wrong && wrongAt("") !== undefined && (
            <p className={css.windowWrong} role="alert">
              {edit.wrong.message} {edit.wrong.hint}
            </p>
          )}
          {edit.changes.length > 0 && (
            <details>
              <summary>{t("edit.changes", { n: edit.changes.length })}</summary>
              <Changes changes={edit.changes} />
            </details>
          )}
          {present !== task.version && !save.isPending && <Meanwhile version={present} />}
          {save.error && <Trouble error={save.error} small />}
          <div className={css.footRow}>
            <TextInput
              aria-label={t("confirm.reason")}
              placeholder={`${t("confirm.reason")}: ${t("confirm.reasonHint")}`}
              maxLength={1_000}
              value={reason}
              onChange={(event) => setReason(event.currentTarget.value)}
            />
            <Button variant="default" onClick={onClose}>
              {t("act.leave")}
            </Button>
            <Button
              type="submit"
              loading={save.isPending}
              disabled={edit.wrong !== undefined || edit.changes.length === 0}
            >
              {t("edit.save")}
            </Button>
          </div>
        </div>
      </form>
    </Dialog>
  );
}
