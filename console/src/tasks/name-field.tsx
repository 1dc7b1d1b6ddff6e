import { Autocomplete } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useWords } from "../messages/words.ts";
import { useTyped } from "../parts/form/filters.tsx";
import css from "./task.module.css";
import { useTaskNames } from "./task-field.tsx";

const typedMs = 180;

/** Typed text matches anywhere in the name, unless it contains a wildcard itself. */
export const globOf = (text: string) => (/[*?]/.test(text) ? text : `*${text}*`);

/** The name filter, applied while the user types. It suggests existing names unless the text contains a wildcard. */
export function NameField({
  label,
  hint,
  value,
  onChange,
  onPick = onChange,
}: {
  label: string;
  hint: string;
  value: string;
  onChange: (text: string) => void;
  /** Called with the whole name of a suggested task that was chosen. */
  onPick?: (name: string) => void;
}) {
  const [text, setText] = useTyped(value, typedMs, onChange);
  const names = useTaskNames(/[*?]/.test(text) ? "" : text, value);
  return (
    <Autocomplete
      data-search
      className={css.nameField ?? ""}
      aria-label={label}
      placeholder={hint}
      leftSection={<IconSearch size={16} aria-hidden />}
      value={text}
      maxLength={200}
      data={names.filter((name) => name !== text)}
      filter={({ options }) => options}
      // Rendered inside the search landmark rather than in a portal, so that screen readers find the suggestions there.
      comboboxProps={{ withinPortal: false }}
      onChange={setText}
      onOptionSubmit={onPick}
    />
  );
}

interface Named {
  task?: string | undefined;
  matching?: string | undefined;
}

/** A filter of runs by task: by the exact name when the user selects a suggestion, otherwise by a part of the name. */
export function TaskNameField({ task, matching, onChange }: Named & { onChange: (named: Named) => void }) {
  const { t } = useWords();
  return (
    <NameField
      label={t("filter.task")}
      hint={t("filter.taskHint")}
      value={task ?? matching ?? ""}
      onChange={(text) => onChange({ task: undefined, matching: text === "" ? undefined : text })}
      onPick={(name) => onChange({ task: name, matching: undefined })}
    />
  );
}

/** Converts the filter into query parameters. */
export const namedOf = ({ task, matching }: Named): { task?: string; matching?: string } =>
  task ? { task } : matching ? { matching: globOf(matching) } : {};
