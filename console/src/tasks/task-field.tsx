import { Autocomplete } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useAnswer } from "../api/answers.ts";
import { useWords } from "../messages/words.ts";

/** Task names that the server finds for the typed text. @param present the field's present value, which is not searched for */
export function useTaskNames(typed: string, present: string): string[] {
  const [asked] = useDebouncedValue(typed.trim(), 150);
  const found = useAnswer(
    "search",
    { q: asked.slice(0, 200) || " " },
    { enabled: asked !== "" && asked !== present, keep: true },
  );
  return asked === "" ? [] : [...new Set((found.data?.tasks ?? []).map(({ name }) => name))];
}

/**
 * A field for a task's name, with suggestions. The value is applied when the user picks a name or presses Enter, in a form also
 * when the field loses focus.
 */
export function TaskField({
  value,
  inForm = false,
  onChange,
}: {
  value: string;
  inForm?: boolean;
  onChange: (task: string | undefined) => void;
}) {
  const { t } = useWords();
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const names = useTaskNames(text, value);
  const take = (name: string) => onChange(name.trim() === "" ? undefined : name.trim());
  return (
    <Autocomplete
      {...(inForm
        ? { label: t("filter.task"), placeholder: t("alarms.anyTask") }
        : {
            "aria-label": t("filter.task"),
            placeholder: t("filter.task"),
            style: { flex: "1 1 200px", maxWidth: 340 },
          })}
      leftSection={<IconSearch size={16} aria-hidden />}
      data={names}
      filter={({ options }) => options}
      value={text}
      onChange={(next) => {
        setText(next);
        if (next === "") take("");
      }}
      onOptionSubmit={take}
      onBlur={() => (inForm ? take(text) : setText(value))}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || event.nativeEvent.isComposing) return;
        if (inForm) event.preventDefault();
        take(text);
      }}
      clearable
      clearButtonProps={{ "aria-label": t("filter.clear") }}
    />
  );
}
