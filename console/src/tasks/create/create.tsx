/** The dialog that creates a task: an HTTP request, a command, or a handler that a worker has under the task's name. */
import { SegmentedControl, Select, Textarea, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { call } from "../../api/call.ts";
import { useWords } from "../../messages/words.ts";
import { Confirm } from "../../parts/form/confirm.tsx";
import { toast } from "../../parts/state/toasts.tsx";
import type { Task } from "../answers.ts";
import { placeOf } from "../edit/form.ts";
import { Preview } from "../edit/preview.tsx";
import { ScheduleFields } from "../edit/schedule-fields.tsx";
import css from "../task.module.css";
import { outdateTask } from "../undo.ts";
import { type Kind, kinds } from "./kinds.ts";
import { firstDefinition, methods, type NewTask, newTask, optionsOf } from "./new-task.ts";

/**
 * @param from the task to copy: the form begins with all its options except the name
 * @param kind the kind of work with which the form begins, if no task is copied
 */
export function Create({ from, kind = "http", onClose }: { from?: Task; kind?: Kind; onClose: () => void }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const [first] = useState(() => firstDefinition(from?.definition));
  const [shown] = useState({ id: 0, accounted: [], definition: first as unknown as Record<string, unknown> });
  const [task, setTask] = useState<NewTask>(() => {
    const begun = newTask(first);
    return from ? begun : { ...begun, kind, form: { ...begun.form, kind: "cron" } };
  });
  const set = (change: Partial<NewTask>) => setTask((before) => ({ ...before, ...change }));
  const read = useMemo(() => {
    try {
      return { ...optionsOf(task, first), wrong: undefined };
    } catch (error) {
      return { options: undefined, is: undefined, wrong: error as Error & { hint?: string } };
    }
  }, [task, first]);
  const place = placeOf(read.wrong);
  const isEmpty = task.kind === "http" ? task.url.trim() === "" : task.kind === "command" && task.line.trim() === "";
  const wrongAt = (part: string) =>
    read.wrong && place === part && !isEmpty
      ? `${read.wrong.message} ${read.wrong.hint ?? ""}`.trim() || t("create.quote")
      : undefined;
  const name = task.name.trim();
  return (
    <Confirm
      title={from ? t("create.copyTitle", { task: from.name }) : t("create.title")}
      consequence={t(`create.told.${task.kind}`)}
      act={t("create.act")}
      size={720}
      blocked={name === "" || isEmpty || read.options === undefined}
      onDo={async ({ reason, key, signal }) => {
        if (!read.options) return;
        const made = await call("createTask", { task: name, options: read.options, reason }, { key });
        outdateTask();
        toast({ text: t("create.done", { task: made.name }) });
        if (!signal.aborted) void navigate({ to: "/tasks/$task", params: { task: made.name } });
      }}
      onClose={onClose}
    >
      <div className={css.form} style={{ marginTop: 14 }}>
        <TextInput
          data-autofocus
          label={t("tasks.name")}
          description={t("create.nameTold")}
          maxLength={200}
          value={task.name}
          onChange={(event) => set({ name: event.currentTarget.value })}
        />
        <SegmentedControl
          className={css.kinds}
          aria-label={t("create.kind")}
          value={task.kind}
          onChange={(kind) => set({ kind: kind as NewTask["kind"] })}
          data={kinds.map((kind) => ({ value: kind, label: t(`create.kind.${kind}`) }))}
        />
        {task.kind === "http" && (
          <div className={css.pair}>
            <Select
              label={t("create.method")}
              allowDeselect={false}
              data={[...methods]}
              value={task.method}
              onChange={(method) => method && set({ method })}
            />
            <TextInput
              label="URL"
              placeholder="https://"
              maxLength={2_000}
              value={task.url}
              error={wrongAt("http")}
              onChange={(event) => set({ url: event.currentTarget.value })}
            />
          </div>
        )}
        {task.kind === "command" && (
          <Textarea
            label={t("create.line")}
            description={t("create.lineTold")}
            autosize
            minRows={1}
            maxRows={6}
            spellCheck={false}
            styles={{ input: { fontFamily: "var(--mono)", fontSize: 13 } }}
            value={task.line}
            error={wrongAt("command")}
            onChange={(event) => set({ line: event.currentTarget.value })}
          />
        )}
        <ScheduleFields
          form={task.form}
          set={(change) => set({ form: { ...task.form, ...change } })}
          lastRead={(read.is ?? first).schedule}
          mayHaveNone
        />
        <Preview form={task.form} task={shown} is={read.is} />
        <TextInput
          label={t("option.description")}
          value={task.description}
          onChange={(event) => set({ description: event.currentTarget.value })}
        />
        {read.wrong && !isEmpty && !["http", "command", "schedule"].includes(place) && (
          <p className={css.windowWrong} role="alert">
            {read.wrong.message} {read.wrong.hint}
          </p>
        )}
      </div>
    </Confirm>
  );
}
