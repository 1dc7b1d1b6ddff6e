import { Autocomplete } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useAnswer } from "../api/answers.ts";
import { useWords } from "../messages/words.ts";

/** A task's name, completed by those that there are; taken when it is chosen or Enter is pressed. */
export function TaskField({ value, onChange }: { value: string; onChange: (task: string | undefined) => void }) {
  const { t } = useWords();
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const [asked] = useDebouncedValue(text.trim(), 150);
  const found = useAnswer(
    "search",
    { q: asked.slice(0, 200) || " " },
    { enabled: asked !== "" && asked !== value, keep: true },
  );
  const names = asked === "" ? [] : [...new Set((found.data?.tasks ?? []).map(({ name }) => name))];
  const take = (name: string) => onChange(name.trim() === "" ? undefined : name.trim());
  return (
    <Autocomplete
      style={{ flex: "1 1 200px", maxWidth: 340 }}
      aria-label={t("filter.task")}
      placeholder={t("filter.task")}
      leftSection={<IconSearch size={16} aria-hidden />}
      data={names}
      filter={({ options }) => options}
      value={text}
      onChange={(next) => {
        setText(next);
        if (next === "") take("");
      }}
      onOptionSubmit={take}
      onBlur={() => setText(value)}
      onKeyDown={(event) => {
        if (event.key === "Enter" && !event.nativeEvent.isComposing) take(text);
      }}
      clearable
      clearButtonProps={{ "aria-label": t("filter.clear") }}
    />
  );
}
