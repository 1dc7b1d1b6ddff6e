/** The fields for blackout windows, the calendar, routing, and all options without their own field. */
import { Button, CloseButton, MultiSelect, NumberInput, Select, Textarea, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import type { OptionName } from "carillon/task";
import { useAnswer } from "../../api/answers.ts";
import { useWords } from "../../messages/words.ts";
import { ZoneField } from "../../parts/form/zone-field.tsx";
import css from "../task.module.css";
import { restOptions } from "./plain-options.ts";
import { type Rules, routeKinds, type Window } from "./rules.ts";

const week = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

export function RuleFields({
  form,
  set,
  wrongAt,
  isSaid,
}: {
  form: Rules;
  set: (change: Partial<Rules>) => void;
  /** The message and hint of the present error if the error is about one of these options; otherwise undefined. */
  wrongAt: (...parts: string[]) => string | undefined;
  /** False for options that a named schedule inherits from its task; these have no field. */
  isSaid: (option: OptionName) => boolean;
}) {
  const { t } = useWords();
  const calendars = useAnswer("listCalendars", { limit: 200 });
  const workers = useAnswer("listWorkers", { limit: 200 });
  const names = calendars.data?.items.map(({ name }) => name) ?? [];
  const nodes = [...new Set(workers.data?.items.map(({ node }) => node) ?? [])];
  return (
    <>
      <div className={css.pair}>
        <Select
          label={t("calendar.ofTask")}
          placeholder={t("edit.noCalendar")}
          data={form.calendar === "" || names.includes(form.calendar) ? names : [form.calendar, ...names]}
          searchable
          clearable
          clearButtonProps={{ "aria-label": t("filter.clear") }}
          value={form.calendar === "" ? null : form.calendar}
          error={wrongAt("calendar")}
          onChange={(calendar) => set({ calendar: calendar ?? "" })}
        />
        {form.calendar !== "" && (
          <>
            <Select
              label={t("edit.on")}
              allowDeselect={false}
              data={[
                { value: "working-days", label: t("edit.on.working_days") },
                { value: "holidays", label: t("edit.on.holidays") },
              ]}
              value={form.on}
              onChange={(on) => on && set({ on: on as Rules["on"] })}
            />
            <Select
              label={t("edit.otherwise")}
              allowDeselect={false}
              data={(["skip", "next", "previous"] as const).map((value) => ({
                value,
                label: t(`edit.otherwise.${value}`),
              }))}
              value={form.otherwise}
              onChange={(otherwise) => otherwise && set({ otherwise: otherwise as Rules["otherwise"] })}
            />
          </>
        )}
      </div>
      <Windows windows={form.windows} onChange={(windows) => set({ windows })} wrong={wrongAt("blackout")} />
      {isSaid("route") && (
        <div className={css.pair}>
          <Select
            label={t("edit.route")}
            allowDeselect={false}
            data={routeKinds.map((value) => ({
              value,
              label: t(`edit.route.${value.replaceAll("-", "_")}` as "edit.route.any"),
            }))}
            value={form.route}
            error={wrongAt("route")}
            onChange={(route) => route && set({ route })}
          />
          {form.route === "pin" && (
            <Select
              label={t("edit.pin")}
              data={form.pin === "" || nodes.includes(form.pin) ? nodes : [form.pin, ...nodes]}
              searchable
              value={form.pin === "" ? null : form.pin}
              onChange={(pin) => set({ pin: pin ?? "" })}
            />
          )}
          {form.route === "shards" && (
            <NumberInput
              label={t("edit.shards")}
              min={1}
              max={1_000}
              value={form.shards}
              onChange={(shards) => set({ shards: Number(shards) || 1 })}
            />
          )}
          <TextInput
            label={t("edit.labels")}
            description={t("edit.labelsTold")}
            value={form.labels}
            error={wrongAt("labels")}
            onChange={(event) => set({ labels: event.currentTarget.value })}
          />
        </div>
      )}
      <Textarea
        label={t("edit.rest")}
        description={t("edit.restTold", { parts: restOptions.filter(isSaid).join(", ") })}
        autosize
        minRows={2}
        maxRows={14}
        spellCheck={false}
        styles={{ input: { fontFamily: "var(--mono)", fontSize: 13 } }}
        value={form.rest}
        error={wrongAt("rest", ...restOptions)}
        onChange={(event) => set({ rest: event.currentTarget.value })}
      />
    </>
  );
}

function Windows({
  windows,
  onChange,
  wrong,
}: {
  windows: Window[];
  onChange: (windows: Window[]) => void;
  wrong: string | undefined;
}) {
  const { t, weekdayName } = useWords();
  const days = week.map((value, at) => ({ value, label: weekdayName((at + 1) % 7, "short") }));
  return (
    <fieldset className={css.windows}>
      <legend>{t("edit.blackouts")}</legend>
      {windows.map((window, at) => {
        const put = (change: Partial<Window>) =>
          onChange(windows.map((one) => (one.id === window.id ? { ...one, ...change } : one)));
        return (
          // biome-ignore lint/a11y/useSemanticElements: a fieldset in a fieldset would be read twice.
          <div key={window.id} className={css.window} role="group" aria-label={t("edit.window", { n: at + 1 })}>
            <TextInput
              label={t("backfill.from")}
              placeholder="22:00"
              value={window.from}
              onChange={(event) => put({ from: event.currentTarget.value })}
            />
            <TextInput
              label={t("backfill.to")}
              placeholder="06:00"
              value={window.to}
              onChange={(event) => put({ to: event.currentTarget.value })}
            />
            <ZoneField label={t("task.zone")} value={window.zone} onChange={(zone) => put({ zone })} />
            <MultiSelect
              label={t("edit.days")}
              {...(window.days.length === 0 ? { placeholder: t("edit.everyDay") } : {})}
              data={days}
              value={window.days}
              onChange={(chosen) => put({ days: week.filter((day) => chosen.includes(day)) })}
            />
            <Select
              label={t("edit.then")}
              allowDeselect={false}
              data={(["skip", "delay"] as const).map((value) => ({ value, label: t(`edit.then.${value}`) }))}
              value={window.then}
              // biome-ignore lint/suspicious/noThenProperty: a task's option has a field of this name.
              onChange={(then) => then && put({ then: then as Window["then"] })}
            />
            <CloseButton
              aria-label={t("edit.removeWindow", { n: at + 1 })}
              onClick={() => onChange(windows.filter(({ id }) => id !== window.id))}
            />
          </div>
        );
      })}
      {wrong && (
        <p role="alert" className={css.windowWrong}>
          {wrong}
        </p>
      )}
      <Button
        size="compact-sm"
        variant="default"
        leftSection={<IconPlus size={14} aria-hidden />}
        onClick={() => {
          const id = 1 + Math.max(0, ...windows.map((one) => one.id));
          // biome-ignore lint/suspicious/noThenProperty: a task's option has a field of this name.
          onChange([...windows, { id, from: "22:00", to: "06:00", zone: "UTC", days: [], then: "skip" }]);
        }}
      >
        {t("edit.addWindow")}
      </Button>
    </fieldset>
  );
}
