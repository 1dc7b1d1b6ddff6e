/** The fields of a task's policies: overlap, misfires, retries, timeout, priority, lost workers. */
import { NumberInput, Select, TextInput } from "@mantine/core";
import { backoffs, misfirePolicies, type OptionName, overlapPolicies } from "carillon/task";
import { useWords } from "../../messages/words.ts";
import css from "../task.module.css";
import { choices } from "./choices.ts";
import type { Form } from "./form.ts";
import { OptionField } from "./option-field.tsx";
import { plainOptions } from "./plain-options.ts";

/** Options whose field has a fixed position in the form; the remaining options follow. */
const placed: readonly OptionName[] = ["description", "onWorkerLost", "timeout", "priority"];

export function PolicyFields({
  form,
  set,
  wrongAt,
  isSaid,
}: {
  form: Form;
  set: (change: Partial<Form>) => void;
  /** The message and hint of the present error if the error is about one of these options; otherwise undefined. */
  wrongAt: (...parts: string[]) => string | undefined;
  /** False for options that a named schedule inherits from its task; these have no field. */
  isSaid: (option: OptionName) => boolean;
}) {
  const { t } = useWords();
  const fields = (options: readonly OptionName[]) =>
    options
      .filter(isSaid)
      .map((option) => (
        <OptionField
          key={option}
          option={option}
          value={form.plain[option]}
          error={wrongAt(option)}
          onChange={(value) => set({ plain: { ...form.plain, [option]: value } })}
        />
      ));
  return (
    <>
      {fields(["description"])}
      <div className={css.pair}>
        {isSaid("overlap") && (
          <Select
            label={t("task.overlap")}
            error={wrongAt("overlap")}
            allowDeselect={false}
            data={choices(t, "overlap", overlapPolicies)}
            value={form.overlap}
            onChange={(overlap) => overlap && set({ overlap })}
          />
        )}
        {isSaid("overlap") && form.overlap === "queue" && (
          <NumberInput
            label={t("edit.atOnce")}
            min={1}
            value={form.atOnce}
            onChange={(value) => set({ atOnce: Number(value) || 1 })}
          />
        )}
        {isSaid("overlap") && form.overlap === "queue" && (
          <NumberInput
            label={t("edit.waiting")}
            placeholder={t("edit.waitingAny")}
            min={1}
            value={form.waiting ?? ""}
            onChange={(value) => set({ waiting: Number(value) || null })}
          />
        )}
        <Select
          label={t("task.misfire")}
          allowDeselect={false}
          data={choices(t, "misfire", misfirePolicies)}
          value={form.misfire}
          onChange={(misfire) => misfire && set({ misfire })}
        />
        {fields(["onWorkerLost"])}
      </div>
      {isSaid("retry") && (
        <div className={css.pair}>
          <NumberInput
            label={t("edit.attempts")}
            error={wrongAt("retry")}
            min={1}
            max={1_000}
            value={form.attempts}
            onChange={(value) => set({ attempts: Number(value) || 1 })}
          />
          {fields(["timeout", "priority"])}
        </div>
      )}
      {isSaid("retry") && form.attempts > 1 && (
        <div className={css.pair}>
          <Select
            label={t("edit.backoff")}
            allowDeselect={false}
            data={backoffs.map((value) => ({ value, label: t(`edit.backoff.${value}`) }))}
            value={form.backoff}
            onChange={(backoff) => backoff && set({ backoff })}
          />
          <TextInput
            label={t("edit.delay")}
            value={form.delay}
            onChange={(event) => set({ delay: event.currentTarget.value })}
          />
          <TextInput
            label={t("edit.maxDelay")}
            value={form.maxDelay}
            onChange={(event) => set({ maxDelay: event.currentTarget.value })}
          />
        </div>
      )}
      <div className={css.pair}>{fields(plainOptions.filter((option) => !placed.includes(option)))}</div>
    </>
  );
}
