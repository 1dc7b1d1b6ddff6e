/** The fields of a task's schedule: its kind, and the fields of that kind. */
import { SegmentedControl, Select, TextInput } from "@mantine/core";
import { useWords } from "../../messages/words.ts";
import { ZoneField } from "../../parts/form/zone-field.tsx";
import type { Schedule } from "../schedule-words.ts";
import css from "../task.module.css";
import { choices } from "./choices.ts";
import type { Form } from "./form.ts";

export function ScheduleFields({
  form,
  set,
  lastRead,
  mayHaveNone,
}: {
  form: Form;
  set: (change: Partial<Form>) => void;
  /** The last valid schedule of the form; it decides which fields are shown while the input is invalid. */
  lastRead: Schedule;
  /** True if the kind "manual" is offered: a task without a schedule, which runs only when it is started. */
  mayHaveNone: boolean;
}) {
  const { t } = useWords();
  // A kind that the form cannot edit is offered only if it is the task's present kind.
  const usual: Schedule["type"][] = ["cron", "every", ...(mayHaveNone ? (["manual"] as const) : [])];
  const kinds = usual.includes(form.kind) ? usual : [...usual, form.kind];
  return (
    <>
      <SegmentedControl
        className={css.kinds}
        aria-label={t("edit.kind")}
        value={form.kind}
        onChange={(kind) => set({ kind: kind as Form["kind"] })}
        data={kinds.map((kind) => ({ value: kind, label: t(`schedule.${kind}`) }))}
      />
      {form.kind === "cron" && (
        <div className={css.pair}>
          <TextInput
            label={t("edit.cron")}
            description={t("edit.cronTold")}
            maxLength={256}
            value={form.cron}
            onChange={(event) => set({ cron: event.currentTarget.value })}
            data-autofocus
            styles={{ input: { fontFamily: "var(--mono)" } }}
          />
          <ZoneField
            label={t("task.zone")}
            description={t("edit.zoneTold")}
            value={form.zone}
            onChange={(zone) => set({ zone })}
          />
        </div>
      )}
      {form.kind === "every" && (
        <TextInput
          label={t("edit.every")}
          description={t("edit.everyTold")}
          value={form.every}
          onChange={(event) => set({ every: event.currentTarget.value })}
        />
      )}
      {(form.kind === "cron" || form.kind === "every") && (
        <div className={css.pair}>
          {form.kind === "cron" && lastRead.type === "cron" && (
            <>
              <Select
                label={t("task.gap")}
                allowDeselect={false}
                data={choices(t, "gap", ["skip", "shift"])}
                value={lastRead.gap}
                onChange={(gap) => set({ gap })}
              />
              <Select
                label={t("task.fold")}
                allowDeselect={false}
                data={choices(t, "fold", ["first", "last", "both"])}
                value={lastRead.overlap}
                onChange={(fold) => set({ fold })}
              />
            </>
          )}
          <TextInput
            label={t("edit.jitter")}
            placeholder={t("edit.noJitter")}
            value={form.jitter}
            onChange={(event) => set({ jitter: event.currentTarget.value })}
          />
          {form.jitter.trim() !== "" && (
            <Select
              label={t("edit.jitterBy")}
              allowDeselect={false}
              data={(["slot", "task"] as const).map((value) => ({ value, label: t(`edit.jitterBy.${value}`) }))}
              value={form.jitterBy}
              onChange={(jitterBy) => set({ jitterBy: jitterBy as "slot" })}
            />
          )}
        </div>
      )}
    </>
  );
}
